"""Files for print: every artifact in every format, escaped, whole, and of the right size."""

from __future__ import annotations

import html
import json
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from corpora import seven_sets

from depthkit.artifacts import Artifact, Figure, Table, build, figures, ids, latex
from depthkit.artifacts.artifact import file_label
from depthkit.artifacts.tables import plain_table
from depthkit.corpus import Corpus

KNOWN = """
begin end caption label centering footnotesize setlength tabcolsep linewidth extracolsep fill
toprule midrule bottomrule cmidrule addlinespace multicolumn vspace raggedright scriptsize par
bar leq geq rho pm times cdot rightarrow ldots textless textgreater textbackslash
textasciitilde textasciicircum textbf circ
"""
HOSTILE = r"a_b & 50% \input{/etc} ~ ^ $z$ #1 <b> {"


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return seven_sets(tmp_path_factory.mktemp("corpora") / "seven")


@pytest.fixture(scope="module")
def built(seven: Corpus) -> list[Artifact]:
    return [build(name, seven) for name in ids()]


@pytest.fixture(scope="module")
def shown(built: list[Artifact], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a report leaves of every artifact."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPTHKIT_REPORT_DIR", str(folder))
        for made in built:
            made.show()
    return folder


def check_latex(source: str) -> None:
    """What pdfLaTeX would stop at: groups and environments left open, bare signs, other columns."""
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    text = "\n".join(lines)
    bare = re.sub(r"\\[\\{}&%$#_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[%#_^~]", re.sub(r"\$[^$]*\$", "", bare))
    assert text.isascii()
    assert Counter(re.findall(r"\\begin\{([^}]+)\}", text)) == Counter(
        re.findall(r"\\end\{([^}]+)\}", text)
    )
    columns = len(re.search(r"\\fill\}\}([lcr]+)@", text)[1])  # type: ignore[index]
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    for row in re.split(r"\\\\(?:\[[^]]*\])?", body):
        if "&" not in row and "multicolumn" not in row:
            continue
        spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        cells = len(re.findall(r"(?<!\\)&", row)) + 1
        assert cells - len(spans) + sum(spans) == columns, row
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= set(KNOWN.split())


def test_every_table_is_sound_latex(built: list[Artifact]):
    tables = [made for made in built if isinstance(made, Table)]
    assert len(tables) >= 4
    for made in tables:
        source = made.latex()
        check_latex(source)
        assert f"\\label{{tab:{made.slug}}}" in source
        assert latex.escape(made.provenance) in source


def test_text_from_a_corpus_cannot_leave_its_cell():
    cells = pd.DataFrame({"g": [HOSTILE], "R": [HOSTILE], HOSTILE: [HOSTILE], "n": ["[2pt]"]})
    table = plain_table(cells, "t", rows="R", groups="g", spanners={HOSTILE: ("n",)})
    source = latex.table(table.as_latex(), HOSTILE, "t", [HOSTILE + "\n\\end{table}"], HOSTILE)
    check_latex(source)
    assert source.count("\\textbackslash{}input") == 8
    assert "\\input" not in source


def test_the_check_of_latex_sees_what_is_wrong(seven: Corpus):
    source = build("depth/table-1", seven).latex()  # type: ignore[attr-defined]
    check_latex(source)
    for broken in (
        source.replace("75\\%", "75%"),
        source.replace("\\end{tabular*}", ""),
        source.replace("Synthetic}", "Synthetic"),
        source.replace("Solved &", "Solved"),
        source.replace("TMax", "\\input"),
        source.replace("TMax", "a_b"),
    ):
        assert broken != source
        with pytest.raises(AssertionError):
            check_latex(broken)


def test_a_table_drawn_otherwise_is_an_error():
    with pytest.raises(ValueError, match="another form"):
        latex.table("\\begin{longtable}", "", "t", [], "")


@pytest.mark.slow
def test_every_figure_is_drawn_at_its_size_in_three_formats(built: list[Artifact], shown: Path):
    drawn = [made for made in built if isinstance(made, Figure)]
    assert len(drawn) >= 2
    for made in drawn:
        width, height = made.size
        assert width in (figures.TEXT_WIDTH, figures.COLUMN_WIDTH)
        header = (shown / f"{made.slug}.png").read_bytes()[:24]
        pixels = (round(width * figures.DPI), round(height * figures.DPI))
        assert struct.unpack(">8x8xII", header) == pytest.approx(pixels, abs=1)
        svg = ET.parse(shown / f"{made.slug}.svg").getroot()
        assert svg.get("width") == f"{width * 72:g}pt"
        pdf = (shown / f"{made.slug}.pdf").read_bytes()
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
        assert box is not None
        assert [float(side) for side in box.groups()] == pytest.approx([width * 72, height * 72])


@pytest.mark.slow
def test_exports_are_the_same_bytes_in_another_process(seven: Corpus, shown: Path, tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; from depthkit.artifacts import ids, build\n"
        "for i in ids(): build(i, sys.argv[1]).export(Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(seven.path), str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    names = {path.name for path in tmp_path.iterdir()}
    assert {"depth-table-1.csv", "depth-figure-3.svg", "depth-figure-3.pdf"} <= names
    assert names == {path.name for path in shown.iterdir() if path.suffix != ".json"}
    for name in sorted(names):
        assert (tmp_path / name).read_bytes() == (shown / name).read_bytes(), name


def test_every_artifact_leaves_its_numbers_and_links_them_by_what_they_are(
    built: list[Artifact], shown: Path
):
    for made in built:
        files = json.loads((shown / f"{made.slug}.json").read_text())["files"]
        kinds = {Path(file).suffix for file in files}
        pictures = {".svg", ".pdf", ".png"} if isinstance(made, Figure) else {".html", ".tex"}
        assert kinds == {".csv"} | pictures
        labels = [file_label(file, made.slug) for file in files]
        assert len(set(labels)) == len(labels)
        assert [f"CSV ({part})" for part in made.parts] == labels[1 : 1 + len(made.parts)]


def test_every_file_says_what_its_numbers_rest_on(
    built: list[Artifact], shown: Path, tmp_path: Path
):
    mixed = [
        replace(made, provenance="3 fitted and 2 measured tasks · corpus scripted")
        for made in built
        if made.id in ("depth/table-1", "depth/figure-3")
    ]
    for made in mixed:
        made.export(tmp_path)
        assert made.stamp == "measured; fitted, not data"
    stamped = [(shown, made) for made in built if made.stamp] + [(tmp_path, m) for m in mixed]
    assert {made.stamp for _, made in stamped} > {"measured; fitted, not data"}
    for folder, made in stamped:
        for path in [p for p in folder.iterdir() if re.match(rf"{made.slug}[.-]", p.name)]:
            if path.suffix == ".json":
                continue  # what the index page is made from, not a file for readers
            if path.suffix == ".csv":
                rows = pd.read_csv(path, keep_default_na=False)
                own = "provenance" in made.frame or any(
                    "provenance" in f for f in made.parts.values()
                )
                assert own or (rows["provenance"] == made.stamp).all(), path.name
                continue
            text = path.read_bytes().decode("utf-8", "replace")
            assert made.stamp in html.unescape(text), path.name
            if path.suffix == ".svg":  # in what the file says of itself, and to be seen
                assert len(re.findall(f">{re.escape(made.stamp)}<", html.unescape(text))) == 2
            if path.suffix == ".html":
                assert re.search(f"<title>.*{made.stamp}.*</title>", html.unescape(text))
                assert '<a href="#provenance">' in text
                assert '<dl class="about" id="provenance"><dt>' in text


def test_what_rests_on_no_run_is_not_stamped(built: list[Artifact]):
    assert {made.id for made in built if not made.stamp} >= {"depth/table-3", "depth/table-7"}


@pytest.mark.slow
def test_fitted_cells_that_no_paper_prints_are_marked(tmp_path: Path):
    table = build("depth/table-1", "paper")
    assert isinstance(table, Table)
    check_latex(table.latex())
    for text in (table.html(), table.latex().replace("$^\\circ$", "\N{DEGREE SIGN}")):
        lines = re.split(r"</tr>|\\\\", text)
        rows = {name: next(x for x in lines if name in x) for name in ("TMax", "Originals")}
        assert "\N{DEGREE SIGN}" in rows["Originals"]
        assert "\N{DEGREE SIGN}" not in rows["TMax"]
        assert "\N{DEGREE SIGN} no printed number" in html.unescape(text)
    assert "numbers that no paper prints are not marked" in build("depth/section-D", "paper").html()
    for made in (build(name, "paper") for name in ids()):
        if isinstance(made, Table) and made.cells:
            assert made.view._tbl_data.shape == (len(made.frame), len(made.cells)), made.id


def test_measured_and_scripted_tables_have_no_such_marks(built: list[Artifact]):
    assert not any("\N{DEGREE SIGN}" in made.html() for made in built if isinstance(made, Table))

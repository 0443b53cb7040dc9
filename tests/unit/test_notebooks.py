"""The committed notebooks: thin, without outputs, and of one form."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from depthkit import artifacts
from depthkit.published import published
from depthkit.reports import load_reports
from depthkit.reports.listing import notebook_parameters

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_every_report_in_the_list_has_right_parameters():
    names = [report.notebook.name for report in load_reports(ROOT)]
    assert names
    assert {path.name for path in NOTEBOOKS} >= set(names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_keeps_no_outputs(path: Path):
    text = path.read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert cell.id
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_only_imports_and_calls(path: Path):
    assert notebook_parameters(path)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        if "parameters" in cell["metadata"].get("tags", []):
            continue
        lines = ast.parse("".join(cell["source"])).body
        assert len({type(line) for line in lines}) == 1
        assert all(isinstance(line, ast.ImportFrom | ast.Import | ast.Expr) for line in lines)
        assert isinstance(lines[0], ast.ImportFrom | ast.Import) or len(lines) == 1


def test_the_readme_maps_every_artifact_to_its_notebook_and_claims():
    rows = re.findall(
        r"^\| [\w .]+ \| `(depth/[\w.-]+)` \| `(\w+)` \| `(\w+)` \| (\d+) \|$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    claims = Counter(
        claim.artifact
        for claim in published("depth")
        if claim.kind == "computed" and claim.artifact and not claim.repeats
    )
    assert {row[0] for row in rows} == set(artifacts.ids()) >= set(claims)
    for artifact_id, function, notebook, count in rows:
        assert claims[artifact_id] == int(count), artifact_id
        calls = [
            line
            for cell in json.loads((ROOT / f"notebooks/{notebook}.ipynb").read_text())["cells"]
            for line in cell["source"]
            if cell["cell_type"] == "code" and line.startswith(f"{function}(")
        ]
        assert calls, artifact_id
        assert getattr(artifacts, function)("demo").id == artifact_id


_PLACES = re.compile(
    r"(?:Sections?|Appendix|Appendices|Tables?|Figures?) [A-Z]?[\d.]*\w?"
    r"(?:(?:, | and (?:of )?)(?:Sections?|Appendix|Appendices|Tables?|Figures?)? ?[A-Z]?[\d.]*)*"
)
_RESULTS = re.compile(
    r"\b(?:\d|%|barely|hardly|nearly|keeps?|overstates?|understates?|drops?|rises?|tracks?|than|never"
    r"|always|more|less|fewer|most|least|deeper|harder|shallow|still)"
)


def stated_results(markdown: str) -> list[str]:
    """Sentences that say how something came out; headings and questions do not."""
    lines = [line for line in markdown.splitlines() if line and not line.startswith("#")]
    sentences = re.split(r"(?<=[.?!:])\s+", _PLACES.sub("", " ".join(lines)))
    return [each for each in sentences if _RESULTS.search(each) and not each.endswith("?")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_text_of_a_notebook_states_no_result(path: Path):
    cells = json.loads(path.read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert [each for text in texts for each in stated_results(text)] == []


def test_results_in_text_are_seen():
    for stated in (
        "Labels set while a task is generated barely track how often models pass it.",
        "Depth keeps its relation to the pass rate once work is held constant.",
        "Nine of 11 tasks are deep.",
        "A data set can be large in W and N and still be shallow.",
    ):
        assert stated_results(f"# Depth\n\n{stated}") == [stated]
    assert not stated_results("Section 4.3, Figure 8 and Table 1. Are deep tasks harder?")


def test_every_parameter_of_a_notebook_reaches_the_claims_on_its_page():
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        for call in (source for source in code if source.startswith("claims(")):
            wanted = set(notebook_parameters(path)) - {"corpus"}
            assert set(re.findall(r"(\w+)=", call)) == wanted, path.name

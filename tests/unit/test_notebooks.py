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

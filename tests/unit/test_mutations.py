"""The list that `make mutations` works through can be worked through."""

from __future__ import annotations

import ast
from pathlib import Path

from mutate import mutations

UNIT = Path(__file__).parent


def test_every_mutation_changes_one_place_and_names_tests_that_exist() -> None:
    listed = mutations()
    assert len(listed) == len(set(listed)) >= 60
    faults = [f"{each}: {fault}" for each in listed if (fault := each.fault())]
    for each in listed:
        assert each.text != each.becomes
        mutated = (UNIT.parents[1] / each.file).read_text().replace(each.text, each.becomes)
        ast.parse(mutated)  # a mutation that is no Python would be caught by any test
        for test in each.tests:
            file, _, name = test.partition("::")
            body = ast.parse((UNIT / file).read_text()).body
            if name and name not in [d.name for d in body if isinstance(d, ast.FunctionDef)]:
                faults.append(f"{each}: there is no test {test}")
    assert faults == []


def test_mutations_are_of_every_part_that_numbers_hang_on() -> None:
    files = " ".join(each.file for each in mutations())
    for part in ("protocol/__", "verdict", "budget", "estimates", "outcome", "leaks", "replay"):
        assert part in files
    assert "correlation" in files

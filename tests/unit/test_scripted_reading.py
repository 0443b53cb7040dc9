"""What the policies read out of instructions and of the terminal."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from sealed_rows import Row, choices, table, write

from depthkit.trials.scripted.reading import (
    answers_directory,
    files_to_read,
    listed_steps,
    locked_steps,
    read_selection,
    unbroken,
)

# --- reading ---


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_selection_becomes_a_command_that_prints_its_seal(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    rows = table(rng)
    write(tmp_path / "data.tsv", rows)
    for phrase, answer in choices(rows, rng):
        selection = read_selection(phrase)
        assert selection is not None, phrase
        command = selection.command(str(tmp_path / "data.tsv"))
        printed = subprocess.run(
            ["bash", "-c", command], text=True, capture_output=True, check=True
        )
        assert printed.stdout == f"{answer}\n", phrase


def test_seals_that_look_like_numbers_are_compared_as_text(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("1000000000000001", "north", 1, "a" * 16),
        ("1000000000000000", "north", 2, "b" * 16),
        ("10e0000000000015", "north", 3, "c" * 16),
    ]
    write(tmp_path / "data.tsv", rows)
    selection = read_selection("of the row whose name is the answer to step 7")
    assert selection is not None
    assert selection.answer_to == 7
    for name, *_, answer in rows:
        command = selection.command(str(tmp_path / "data.tsv"), f'"{name}"')
        printed = subprocess.run(
            ["bash", "-c", command], text=True, capture_output=True, check=True
        )
        assert printed.stdout == f"{answer}\n"


@pytest.mark.parametrize(
    "phrase",
    [
        "of the row whose name is $(touch /tmp/x)",
        "of the row whose name is a'b",
        'of the first row whose zone is "north',
        "of the row whose name is x; rm -r /",
        "of the heaviest row",
        "on line twelve",
    ],
)
def test_what_does_not_read_as_a_selection_becomes_no_command(phrase: str) -> None:
    assert read_selection(phrase) is None


def test_sentences_broken_by_the_terminal_are_read_whole() -> None:
    long = f"Step 2. From /app/{'deep/' * 30}02.tsv take the seal on line 4."
    broken = f"Step 1. From /app/01.tsv take the\nseal on line 3.\n{long[:160]}\n{long[160:]}\n"
    assert set(listed_steps(unbroken(broken))) == {1, 2}


def test_a_line_that_just_fills_the_terminal_is_not_joined_to_the_next_step() -> None:
    full = f"Step 1. From /app/{'x' * 113}.tsv take the seal on line 3."
    assert len(full) == 160
    screen = f"{full}\nStep 2. From /app/2.tsv take the seal on line 4.\n"
    assert set(listed_steps(unbroken(screen))) == {1, 2}


def test_a_sentence_cut_by_the_output_limit_is_left_out_and_the_next_one_kept() -> None:
    screen = (
        "Step 4. From /app/04.tsv take the seal of the row whose na\n"
        "[... output limited to 10000 bytes; 99 interior bytes omitted ...]\n"
        "zone is north.\nStep 9. From /app/09.tsv take the seal on line 3.\n"
    )
    assert set(listed_steps(screen)) == {9}


def test_a_locked_step_with_a_selection_not_understood_is_no_step() -> None:
    head = (
        "Step 1\nFrom /app/step-1.tsv take these seals and join them with hyphens, in this order:\n"
    )
    tail = "Write the answer to /app/answer.txt\n"
    assert set(locked_steps(f"{head}- the seal on line 3\n{tail}")) == {1}
    assert locked_steps(f"{head}- the seal on line 3\n- the seal of the moon\n{tail}") == {}


@pytest.mark.parametrize("place", ["/app/answers/i", "`/app/answers/i`", "/app/answers/i."])
def test_files_and_places_are_found_in_the_instruction(place: str) -> None:
    text = f"See /app/steps.txt. Write the answer to step i to {place}\nThen stop."
    assert files_to_read(text) == ["/app/steps.txt"]
    assert answers_directory(text) == "/app/answers"
    assert files_to_read("Start at /app/step-1.txt, write to /app/answer.txt") == [
        "/app/step-1.txt"
    ]

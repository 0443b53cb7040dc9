"""What the documentation says the dashboard does, beside other viewers, is tested in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs/dashboard.md").read_text()

TESTED = {
    "list, filter, sort": ["test_filters_stand_in_the_address_and_can_be_taken_back"],
    "per-turn view": [
        "test_terminal_and_turns_are_in_step_both_ways",
        "test_continuations_and_summarizations_are_followed",
    ],
    "terminal playback in step with turns": [
        "test_terminal_and_turns_are_in_step_both_ways",
        "test_recordings_of_segments_play_one_after_another_in_step_with_the_turns",
    ],
    "tokens, cost, time of a turn": [
        "test_recordings_of_segments_play_one_after_another_in_step_with_the_turns"
    ],
    "two runs side by side, aligned by turn": ["test_two_runs_are_compared_from_the_page_of_one"],
    "depth ladder of a task": ["test_from_the_overview_to_a_turn_and_back"],
    "verifier output per segment": [
        "test_recordings_of_segments_play_one_after_another_in_step_with_the_turns"
    ],
    "continuation files": ["test_continuations_and_summarizations_are_followed"],
    "notes and labels": ["test_labels_and_notes_stay_and_filter"],
    "live": ["test_the_list_of_runs_follows_a_ladder_and_its_budget"],
    "keyboard": ["test_the_keyboard_leads_everywhere"],
    "size": ["test_a_line_of_forty_megabytes_is_said_and_not_cut_silently"],
}
"""Browser tests of each row that does not say no."""


def rows() -> dict[str, str]:
    """Feature and what is said of this dashboard."""
    part = TABLE.split("## Beside other viewers")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]+ \| [^|]+ \|$", part, re.MULTILINE)
    assert len(found) > 10
    return dict(found)


def browser_tests() -> set[str]:
    files = [*(TESTS / "browser").glob("test_*.py"), TESTS / "integration/test_live.py"]
    found: set[str] = set()
    for file in files:
        text = file.read_text()
        assert "pytest.mark.browser" in text, file
        found |= set(re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))
    return found


def test_every_feature_of_the_table_has_a_test_and_no_other_is_named():
    claimed = {feature for feature, said in rows().items() if said != "no"}
    assert claimed == set(TESTED)


@pytest.mark.parametrize("feature", TESTED)
def test_the_tests_of_a_feature_are_there(feature: str):
    assert TESTED[feature]
    assert set(TESTED[feature]) <= browser_tests()

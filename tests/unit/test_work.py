"""The three measures of work (Appendix D)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from depthkit.errors import DepthkitError
from depthkit.model import Work
from depthkit.tasks import work_of_script
from depthkit.tasks.text import MAX_TEXT_BYTES


def test_tokens_are_o200k_base_and_characters_are_those_of_the_text() -> None:
    assert work_of_script("hello world") == Work(lines=1, tokens=2, chars=11)
    # Nine tokens in cl100k_base, the vocabulary before this one.
    assert work_of_script("お誕生日おめでとう").tokens == 8
    assert work_of_script("naïve\r\n") == Work(lines=1, tokens=4, chars=7)


def test_an_empty_script_has_no_work() -> None:
    assert work_of_script("") == Work(lines=0, tokens=0, chars=0)


def test_special_tokens_in_a_script_are_plain_text() -> None:
    assert work_of_script("echo '<|endoftext|>'\n").tokens > 5


@pytest.mark.parametrize("character", [" ", "\n", "a", "\u3000", "#", "'"])
def test_the_largest_script_allowed_is_counted(character: str) -> None:
    assert work_of_script(character * MAX_TEXT_BYTES).chars == MAX_TEXT_BYTES


def test_a_larger_script_is_refused() -> None:
    with pytest.raises(DepthkitError, match="900,001 characters"):
        work_of_script("a" * (MAX_TEXT_BYTES + 1))


def test_counting_needs_no_network_and_imports_neither_litellm_nor_harbor(tmp_path: Path) -> None:
    """Even where the user's own tokenizer cache is empty and no address can be reached."""
    program = """
import json, socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("network used")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from depthkit.tasks.work import work_of_script
tokens = work_of_script("hello world").tokens
print(json.dumps([tokens, "litellm" in sys.modules, "harbor" in sys.modules]))
"""
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert json.loads(result.stdout) == [2, False, False]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("state", ["missing", "altered"])
def test_a_missing_or_altered_vocabulary_is_one_clear_error(tmp_path: Path, state: str) -> None:
    """A stand-in litellm without the file; nothing is downloaded in its place."""
    folder = tmp_path / "litellm" / "litellm_core_utils" / "tokenizers"
    folder.mkdir(parents=True)
    (tmp_path / "litellm" / "__init__.py").touch()
    if state == "altered":
        (folder / "fb374d419588a4632f3f557e76b4b70aebbca790").write_text("IQ== 0\n")
    program = """
from depthkit.errors import DepthkitError
from depthkit.tasks.work import work_of_script
try:
    work_of_script("hello")
except DepthkitError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert "o200k_base vocabulary" in result.stdout
    assert "reinstall litellm" in result.stdout

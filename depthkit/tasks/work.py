"""Work of a reference solution in lines, tokens and characters (Section 2, Appendix D)."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from depthkit.errors import DepthkitError
from depthkit.model import Work
from depthkit.tasks.bash import comment_lines
from depthkit.tasks.text import MAX_TEXT_BYTES

if TYPE_CHECKING:
    import tiktoken

_VOCABULARY_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""The name under which tiktoken looks for o200k_base in its cache directory."""

_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


def work_of_script(text: str) -> Work:
    r"""Work of one shell script.

    Lines are physical lines that are neither blank nor comments: a line with a continuation
    counts by itself, every non-blank line of a here-document or a quoted string counts whatever
    it begins with ("each line of file content written … counted separately", Section 2), and a
    shebang is a comment. Tokens (o200k_base) and characters are those of the whole text.

    Raises:
        DepthkitError: the text is longer than :data:`MAX_TEXT_BYTES` characters, or the
            vocabulary that comes with LiteLLM is missing.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise DepthkitError(
            f"the script has {len(text):,} characters; work is counted up to {MAX_TEXT_BYTES:,}."
        )
    comments = comment_lines(text)
    lines = sum(
        1
        for number, line in enumerate(text.split("\n"))
        if number not in comments and line.strip(" \t\r\v\f")
    )
    return Work(lines=lines, tokens=len(_o200k_base().encode_ordinary(text)), chars=len(text))


@functools.cache
def _o200k_base() -> tiktoken.Encoding:
    """The tokenizer, read from the vocabulary bundled with LiteLLM and never from the network."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise DepthkitError("litellm is not installed; run `make setup`.")
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    vocabulary = folder / _VOCABULARY_FILE
    # tiktoken downloads whatever it does not find, or finds altered: look before it does.
    if not vocabulary.is_file():
        raise DepthkitError(
            f"{vocabulary}: the o200k_base vocabulary that comes with litellm is missing; "
            "reinstall litellm."
        )
    if hashlib.sha256(vocabulary.read_bytes()).hexdigest() != _VOCABULARY_SHA256:
        raise DepthkitError(
            f"{vocabulary}: is not the o200k_base vocabulary (its digest differs); "
            "reinstall litellm."
        )
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding("o200k_base")
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before

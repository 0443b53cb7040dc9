"""What others wrote: plain names, files in their directory, numbers that can be; no secrets."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from depthkit.errors import DepthkitError

MAX_FILE_BYTES = 256 * 1024 * 1024
"""A larger file of a trial is neither read nor copied; whoever skips it says so."""

REDACTED = "[redacted]"

_MAX_COUNT = 2**63 - 1

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199}")
_SECRET_FIELD = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"\b(?:sk-(?=[\w-]*\d)[\w-]{16,}|(?:hf|gh[opsu]|pat)_\w{16,}|xox[a-z]-[\w-]{10,})|Bearer \S{8,}"
)
_SECRET_URL = re.compile(
    r"(://)[^/\s\"'@]+@|([?&][\w-]*(?:key|token|secret|passw|sig)[\w-]*=)[^&\s\"']+",
    re.IGNORECASE,
)
_SECRET_JSON = re.compile(
    r'(?<!\\)"([^"\\]*(?:key|token|secret|passw|credential|authorization|cookie)[^"\\]*)"'
    r'(\s*:\s*)"(?:[^"\\]|\\.)*"',
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class UnreadableError(Exception):
    """A file of a trial that cannot be used; the message says which and why."""


def is_plain_name(name: object) -> bool:
    """Whether ``name`` can be one path component: no separator, no leading dot, 1 to 200 chars."""
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


def require_plain_name(name: object, what: str) -> str:
    """Return ``name`` if it is a plain name.

    Raises:
        DepthkitError: If it is not; ``what`` names file and field.
    """
    if isinstance(name, str) and is_plain_name(name):
        return name
    raise DepthkitError(
        f"{what} is {json.dumps(name, default=str)[:120]}; it must be a plain name of letters, "
        "digits and . _ + @ = - that starts with a letter or digit."
    )


def one_line(text: object, limit: int = 300) -> str:
    """Text for a record: one line, no control characters, at most ``limit`` characters."""
    line = _CONTROL.sub(" ", str(text)).encode("utf-8", "replace").decode().strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(number: int, what: str) -> str:
    """For example ``1 task`` or ``1,260 runs``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def read_inside(path: Path, root: Path) -> bytes:
    """Read a regular file that really lies inside ``root``.

    A symbolic link is followed only when it stays inside ``root`` (as under git-annex).

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableError: It leaves ``root``, is no regular file, is too large or cannot be read.
    """
    try:
        real = os.path.realpath(path, strict=True)
        inside = os.path.realpath(root)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(f"{path.name} cannot be read ({error.strerror})") from error
    if os.path.commonpath([real, inside]) != inside:
        raise UnreadableError(f"{path.name} leads out of its directory")
    return read_regular(real)


def read_regular(path: str | Path) -> bytes:
    """Read a regular file that is not a symbolic link.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableError: It is a link, no regular file, too large or cannot be read.
    """
    name = os.path.basename(path)  # noqa: PTH119 - called by the hundred thousand
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UnreadableError(f"{name} cannot be read ({why})") from error
    with os.fdopen(descriptor, "rb") as handle:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise UnreadableError(f"{name} is not a regular file")
        if info.st_size > MAX_FILE_BYTES:
            raise UnreadableError(
                f"{name} has {info.st_size:,} bytes; at most {MAX_FILE_BYTES:,} are read"
            )
        return handle.read()


def parse_json(data: bytes, name: str) -> Any:
    """Parse JSON that someone else wrote.

    Raises:
        UnreadableError: It is cut off, not JSON, or too deep or too long a number to parse.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{name} is not whole JSON ({one_line(error, 120)})") from error


def redact(value: Any, *, in_env: bool = False) -> Any:
    """Copy of a JSON value without keys and other secrets.

    Replaced by ``[redacted]``: non-empty strings in fields whose name contains key, token, secret,
    passw, credential, authorization or cookie (numbers such as token counts stay); every value of
    an ``env`` table (its names stay); and what looks like a key inside any other text.
    """
    if isinstance(value, dict):
        return {
            name: REDACTED
            if isinstance(inner, str) and inner and (in_env or _SECRET_FIELD.search(name))
            else redact(inner, in_env=name in ("env", "extra_headers"))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        if not any(isinstance(inner, dict | list | str) for inner in value):
            return value  # Token ids and the like, often by the million.
        return [redact(inner, in_env=in_env) for inner in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_text(text: str) -> str:
    """Text without what looks like an API key, a bearer token, or credentials in an address."""
    text = _SECRET_URL.sub(lambda m: f"{m[1]}{REDACTED}@" if m[1] else f"{m[2]}{REDACTED}", text)
    return _SECRET_TEXT.sub(REDACTED, text)


def hide(text: str, key: str | None) -> str:
    """Text without a known key: as it is, as JSON writes it, or in JSON within JSON, as a reply is.

    ``***`` stands in its place.
    """
    forms = [key or ""]
    for _ in range(2):
        forms.append(json.dumps(forms[-1])[1:-1])
    for form in reversed(forms):
        text = text.replace(form, "***") if form else text
    return text


def redact_json_text(text: str) -> str:
    """Redact fields by name in JSON that is cut off and cannot be parsed."""
    return _SECRET_JSON.sub(rf'"\1"\2"{REDACTED}"', text)


def count(value: object) -> int | None:
    """A count that someone else wrote: a whole number from 0 to 2^63 - 1, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return value if 0 <= value <= _MAX_COUNT else None


def dollars(value: object) -> float | None:
    """A cost that someone else wrote; ``None`` for 0, which stands for want of a price."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else None


def timestamp(value: object) -> datetime | None:
    """A time that someone else wrote, as UTC; one without a zone is taken to be UTC."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None

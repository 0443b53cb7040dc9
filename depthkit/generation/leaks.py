"""What an instruction gives away of its solution and checks (Section 3.3, Appendix F).

An instruction states names: paths, ports, accounts, settings, report fields. Everything else in a
solution or check script that is not an ordinary word has no place in it: a command line, an option,
the name of a setting, a sentence of a comment. What is compared are texts, not meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from depthkit.generation.formats import Report, read_reports, without_formats
from depthkit.tasks.bash import comment_lines
from depthkit.tasks.check_scripts import check_script, instruction_file, names_file
from depthkit.tasks.load import LoadedTask
from depthkit.tasks.names import read_names
from depthkit.tasks.reading import CHECKS, READERS
from depthkit.tasks.text import read_text
from depthkit.tasks.words import read_script

RUN_WORDS = {"command": 4, "comment": 5}
"""So many words in a row of a script's line are no accident."""

_WORD = re.compile(r"[A-Za-z0-9_./:@%+=~-]+")
_EVERYWHERE = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "/bin/bash", "utf-8"})  # noqa: S104
_SHELL = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "do", "done", "while", "until", "case", "esac"}
    | {"in", "function", "set", "local", "echo", "printf", "exit", "return", "export", "cd"}
)


@dataclass(frozen=True, order=True)
class Leak:
    """A text of a solution or check script that stands in an instruction.

    Attributes:
        segment: Of the instruction, from 1.
        text: What stands in both.
        source: Where else it stands, and the line there.
        line: From 1.
    """

    segment: int
    text: str
    source: str
    line: int

    def __str__(self) -> str:
        return (
            f"the instruction of segment {self.segment} has {self.text!r}, as {self.source}:"
            f"{self.line} has: state it in names.toml if the solver must know it, else leave it out"
        )


class _Stated:
    """What instructions may say: names, settings, reports with their fields and columns."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.casefold().strip() for name in names if name.strip()} | _EVERYWHERE

    @cached_property
    def _parts(self) -> frozenset[str]:
        return frozenset(
            part for name in self._names for part in re.split(r"[^\w-]+", name) if part
        )

    def exactly(self, text: str) -> bool:
        return text.casefold().strip() in self._names

    def within(self, text: str) -> bool:
        """Whether it stands within a name, such as a folder of a path."""
        folded = text.casefold().rstrip("/")
        return any(
            re.search(rf"(?<![\w]){re.escape(folded)}(?![\w])", name) is not None
            for name in self._names
        )

    def made_of(self, text: str) -> bool:
        """Whether all its parts are of names, but for the scheme of a URL."""
        folded = text.casefold()
        parts = [part for part in re.split(r"[^\w-]+", folded.rpartition("://")[2]) if part]
        if folded.startswith("/"):
            above = folded.rstrip("/")
            while above := above.rpartition("/")[0]:
                if above in self._names:
                    break
            else:
                return False
        return bool(parts) and all(part in self._parts for part in parts)


def leaks(task: LoadedTask) -> list[Leak]:
    """What the instructions of a task give away of its solutions and checks, in order.

    Formats that the pipeline wrote from declared reports are not looked at. What is looked for, in
    the solution and the checks of every segment: several words in a row, commands with their first
    argument, options, words with something else than letters in them, numbers of three digits and
    more. A text does not count that is a name stated in any segment (``names.toml``), a path, field
    or column of a declared report, within one, or put together from them.

    Raises:
        DepthkitError: ``names.toml`` or ``reports.toml`` of a segment cannot be used.
    """
    stated = _Stated(_names(task))
    found: dict[tuple[int, str], Leak] = {}
    texts = [_Text(without_formats(_instruction(task, index))) for index in range(task.record.k)]
    for index in range(task.record.k):
        for file, script in _scripts(task, index):
            words = list(_giving_away(script, stated))
            for number, instruction in enumerate(texts, 1):
                held = [(line, text) for line, text in words if instruction.holds(text)]
                for line, text in (*held, *_runs(script, instruction, stated)):
                    found.setdefault((number, text.casefold()), Leak(number, text, file, line))
    kept = sorted(found.values())
    # Of a line and its words the line is told.
    return [
        leak
        for leak in kept
        if not any(
            other.segment == leak.segment
            and other.text != leak.text
            and leak.text.casefold() in other.text.casefold()
            for other in kept
        )
    ]


def _plain(text: str) -> str:
    """A text without quotes and brackets, a blank between words."""
    text = re.sub(r"=[\"']", "=", text)
    return " ".join(re.sub(r"[`\"'*;|&<>(){}\[\]\\]", " ", text).split())


class _Text:
    def __init__(self, text: str) -> None:
        self._text = _plain(text).casefold()

    def holds(self, text: str) -> bool:
        """Whether a text stands in it, as words of its own."""
        wanted = _plain(text).casefold()
        if not wanted:
            return False
        start = r"(?<![\w/.-])" if wanted[0].isalnum() or wanted[0] in "/-" else ""
        end = r"(?![\w/-]|\.\w)" if wanted[-1].isalnum() else ""
        return re.search(start + re.escape(wanted) + end, self._text) is not None


def _instruction(task: LoadedTask, index: int) -> str:
    path = instruction_file(task, index)
    return read_text(path, str(path))


def _names(task: LoadedTask) -> list[str]:
    names: list[str] = []
    for index in range(task.record.k):
        path = names_file(task, index)
        declared = read_names(path, str(path))
        names += [*declared.names, *declared.settings] if declared else []
        for report in segment_reports(task, index):
            names += [report.path, *report.names]
    return names


def segment_reports(task: LoadedTask, index: int) -> tuple[Report, ...]:
    """The reports that a segment declares, by its place from 0."""
    path = names_file(task, index).with_name("reports.toml")
    return read_reports(path, path.relative_to(task.path).as_posix())


def _scripts(task: LoadedTask, index: int) -> list[tuple[str, str]]:
    paths = [path for path in (task.solutions[index], check_script(task, index)) if path]
    return [
        (path.relative_to(task.path).as_posix(), read_text(path, str(path), latin_1=True))
        for path in paths
    ]


def _giving_away(script: str, stated: _Stated) -> Iterable[tuple[int, str]]:
    """Texts of a script that an instruction must not have, with their lines."""
    comments = comment_lines(script)
    for number, line in enumerate(script.replace("\r\n", "\n").split("\n")):
        for word in [] if number in comments else _words(line):
            if _distinctive(word) and not _excused(word, stated):
                yield number + 1, word
    for command in read_script(script).every_command():
        values = [word.value for word in command.words[:2] if word.fixed]
        if len(values) < 2 or command.name in _SHELL | CHECKS | set(READERS):
            continue
        # A program that the environment brings, such as a script with a path, may be told to be
        # used; what is done with the software's own commands may not.
        told = "/" in values[0] and stated.exactly(values[0])
        said = " ".join(values)
        if told or stated.exactly(said):
            continue
        if re.fullmatch(r"[\w./+-]+", values[0]) and _argument(values[1]):
            yield command.line, said


def _runs(script: str, instruction: _Text, stated: _Stated) -> Iterable[tuple[int, str]]:
    """The longest runs of words of a script's lines that stand in an instruction."""
    comments = comment_lines(script)
    for number, line in enumerate(script.replace("\r\n", "\n").split("\n")):
        words = _plain(line.strip(" \t#")).split()
        least = RUN_WORDS["comment" if number in comments else "command"]
        at = 0
        while at + least <= len(words):
            end = at + least
            while end <= len(words) and instruction.holds(" ".join(words[at:end])):
                end += 1
            run = " ".join(words[at : end - 1])
            if end - 1 - at >= least and not stated.exactly(run):
                yield number + 1, run
                at = end - 1
            else:
                at += 1


def _argument(word: str) -> bool:
    """Whether a command with it is more than two words that may well stand side by side."""
    return bool(re.fullmatch(r"[\w./:@%+=~,-]{2,}", word)) and not word.isalpha()


def _words(line: str) -> list[str]:
    words = []
    for word in _WORD.findall(_plain(line)):
        bare = word.strip(".,:=%@~")
        words.append(bare)
        # An option is told from its value: --dir=/srv is one as well as the other.
        name, sign, value = bare.partition("=")
        if sign:
            words += [name, value]
    return words


def _distinctive(word: str) -> bool:
    """Whether a word is none of everyday English or of a unit."""
    if word.startswith("-"):
        return len(word.lstrip("-")) >= 3
    if word.isdigit():
        return len(word) >= 3
    if len(word) < 5 or (word.isalpha() and not re.search(r"[a-z][A-Z]", word)):
        return False
    # A word with a hyphen is English as often as not.
    return not re.fullmatch(r"[A-Za-z]+-[A-Za-z]+", word)


def _excused(word: str, stated: _Stated) -> bool:
    if word.startswith("-") or ("=" in word and not word.startswith("/")):
        return stated.exactly(word) or stated.within(word)
    if stated.exactly(word) or stated.within(word):
        return True
    # Letters alone, in two cases, are the name of something.
    return not word.isalpha() and stated.made_of(word)

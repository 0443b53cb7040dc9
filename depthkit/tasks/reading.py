"""Reading a check script: what its words are for certain, and which names it relies on."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from depthkit.tasks.findings import Finding
from depthkit.tasks.words import Command, Script, Word, read_script

CHECKS = frozenset(
    {"expect_ok", "expect_out", "expect_no_out", "expect_fail", "expect_eq", "expect_file"}
    | {"expect_port", "expect_proc", "expect_proc_arg", "pass", "fail"}
)
"""Functions of the library that are checks."""

READERS = {"field": 2, "column": 2, "cell": 4, "rows": 2}
"""Readers of report files, and how many arguments each has."""

_SYSTEM = ("/dev/", "/proc/", "/sys/", "/usr/", "/bin/", "/sbin/", "/lib/", "/etc/", "/run/")
PATH = re.compile(r"(?<![\w.:/~$}])/(?:[\w.+@%~-]+/)*[\w.+@%~-]+/?")
_CONSTANT = re.compile(r"\$\(\(([\d\s+*/%()-]+)\)\)")
"""Arithmetic over numbers that are written in."""
_URL = re.compile(r"\b\w+://[^/\s:]+(?::(\d+))?((?:/[\w.+@%~-]+)*)/?")


@dataclass
class CheckScript:
    """A check script with what it is judged by.

    Attributes:
        file: Shown in findings.
        script: The script as read.
        instruction: Of this segment and those before it.
        names: Names that the task declares for this segment.
        own_scripts: Names of files that the reference solution itself writes or brings.
    """

    file: str
    script: Script
    instruction: str
    names: Sequence[str] = ()
    own_scripts: frozenset[str] = frozenset()
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._set: dict[str, list[Word]] = defaultdict(list)
        self.all = list(self.script.every_command())
        for command in self.all:
            for name, value in command.assignments:
                self._set[name].append(value)
            if command.name in ("local", "declare", "readonly", "export"):
                for word in command.arguments:
                    name, sign, _ = word.raw.partition("=")
                    if sign:
                        self._set[name] += [
                            Word(word.raw, word.value.partition("=")[2], word.fixed)
                            if not word.inner and not word.variables
                            else word
                        ]
            elif command.name in ("for", "read", "mapfile", "select"):
                for word in command.arguments:
                    self._set[word.value].append(Word("", "", fixed=False))
        self._stated = _folded(self.instruction)
        self.reports = self._reports()

    def found(self, line: int, rule: str, text: str) -> None:
        """Keep a finding; the same one twice is one."""
        finding = Finding(self.file, line, rule, text)
        if finding not in self.findings:
            self.findings.append(finding)

    # --- what words are ---

    def resolve(self, word: Word, depth: int = 0) -> str | None:
        """What a word is for certain, or ``None``."""
        if word.fixed:
            return word.value
        if word.inner or depth > 4:
            return self._echoed(word)
        value = word.value
        for name in word.variables:
            ways = self._set.get(name, [])
            known = {self.resolve(way, depth + 1) for way in ways}
            only = known.pop() if len(known) == 1 else None
            default = re.search(rf"\$\{{{name}:?[-=]([^}}$]*)\}}", value)
            if default and not ways:
                value = value.replace(default[0], default[1])
            elif only is None:
                return None
            else:
                value = value.replace(f"${{{name}}}", only).replace(f"${name}", only)
        value = _CONSTANT.sub(lambda found: found[1].strip(), value)
        return None if "$" in value else value

    def source(self, word: Word, depth: int = 0) -> str:
        """A word as it is written, or where it is one variable that is set once, what that is."""
        ways = self._set.get(word.variables[0], []) if len(word.variables) == 1 else []
        alone = word.raw.strip('"') in (f"${v}" for v in word.variables)
        if alone and len(ways) == 1 and depth < 5:
            return self.source(ways[0], depth + 1)
        return word.raw.strip('"')

    def _echoed(self, word: Word) -> str | None:
        """A literal that is wrapped into a command which only prints it."""
        plain = all(c.name in ("echo", "printf") and not c.redirections for c in word.inner)
        if not plain or len(word.inner) != 1 or not word.raw.strip('"').startswith("$("):
            return None
        said = [self.resolve(each) for each in word.inner[0].arguments]
        return None if None in said else " ".join(filter(None, said))

    def stated(self, text: str) -> bool:
        """Whether a text stands in the instruction, as words of its own."""
        wanted = _folded(text).strip(" \"'`")
        start = r"(?<![\w])" if wanted[:1].isalnum() else ""
        end = r"(?![\w])" if wanted[-1:].isalnum() else ""
        return bool(re.search(start + re.escape(wanted) + end, self._stated))

    def name_stated(self, name: str) -> bool:
        """The same for a name; a path may be put together from names that are stated."""
        if self.stated(name):
            return True
        places = [n for n, char in enumerate(name) if char == "/" and n > 0]
        return any(self.stated(name[:n]) and self.name_stated(name[n + 1 :]) for n in places)

    def key_stated(self, text: str) -> bool:
        """The same for the name of a field or column."""
        return _as_key(text) in _as_key(self.instruction)

    def _reports(self) -> set[str]:
        files = {
            self.resolve(command.arguments[0])
            for command in self.all
            if command.name in READERS and command.arguments
        }
        return {name for name in files if name}

    def from_reader(self, word: Word, depth: int = 0) -> bool:
        """Whether a word's value was read off a report file."""
        inner = [c for each in word.inner for c in each.nested()]
        if any(command.name in READERS for command in inner):
            return True
        ways = [way for name in word.variables for way in self._set.get(name, [])]
        return depth < 5 and any(self.from_reader(way, depth + 1) for way in ways)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _as_key(text: str) -> str:
    return " ".join(re.sub(r"[-_\s\"'`*|]+", " ", text.casefold()).split())


def tail_of(command: Command) -> tuple[Word, ...]:
    """The words after ``--`` of a check that runs a command."""
    places = [n for n, word in enumerate(command.words) if word.value == "--"]
    return command.words[places[0] + 1 :] if places else ()


def run_by(checks: CheckScript, words: Sequence[Word], line: int) -> Iterator[Command]:
    """Commands that a check's own command comes to: itself, or what its shell is told to do."""
    if not words:
        return
    names = [word.value for word in words]
    if names[0] in ("bash", "sh") and len(words) > 2 and names[1].endswith("c"):
        told = checks.resolve(words[2])
        # What stands in single quotes is fixed, its variables are the inner shell's.
        if told is not None or words[2].fixed:
            yield from read_script(told or words[2].value, line).every_command()
            return
    yield Command(line, tuple(words))


def names_used(checks: CheckScript) -> dict[str, tuple[int, bool]]:
    """Names that the checks rely on, as far as they can be read off.

    Returns:
        dict: Line of the first use and whether it is the name of a field or column, by name.
    """
    names: dict[str, tuple[int, bool]] = {}

    def add(name: str | None, line: int, *, key: bool = False) -> None:
        if name:
            names.setdefault(name, (line, key))

    for command in checks.all:
        arguments = [checks.resolve(word) for word in command.arguments]
        line = command.line
        if command.name in READERS and arguments:
            add(arguments[0], line)
            if command.name == "field":
                add(arguments[1] if len(arguments) > 1 else None, line, key=True)
            else:
                for spec in arguments[1::2]:
                    add((spec or "").rpartition(":")[0], line, key=True)
        elif command.name == "expect_port" and len(arguments) > 2:
            if arguments[1] not in (None, "localhost", "127.0.0.1", "::1"):
                add(arguments[1], line)
            add(arguments[2], line)
        elif command.name in ("expect_file", "expect_proc", "expect_proc_arg"):
            for each in arguments[1:]:
                add(each, line)
        else:
            for word in command.words[1:]:
                if command.name == "sed" and word.value.startswith("s"):
                    continue
                for name in _names_within(
                    checks.resolve(word) or (word.value if word.fixed else "")
                ):
                    add(name, line)
    return names


def _names_within(text: str) -> Iterator[str]:
    """Paths and ports in a word of a command."""
    for found in _URL.finditer(text):
        if found[1]:
            yield found[1]
        if found[2]:
            yield found[2].rstrip("@")
    for path in PATH.findall(_URL.sub(" ", text)):
        if not f"{path}/".startswith(_SYSTEM):
            yield path.rstrip("@")

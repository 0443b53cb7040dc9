"""The commands of a shell script as they are written: words, redirections, comments.

For reading check scripts, not for running them. It follows bash's grammar as far as telling
commands and words apart takes; on a broken script it goes on to the end, and what follows an
unclosed quote is part of its word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPENS = frozenset({"if", "while", "until", "for", "select", "case"})
_ASKS = ("if", "while", "until")
_CLOSES = frozenset({"fi", "done", "esac"})
_GOES_ON = frozenset({"then", "do", "else", "elif", "!", "time", "in"})
CASE = "case)"
"""Stands before the patterns of a case, as the name of a command."""
_META = " \t\n;&|()<>"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>\||>>|>&|<\(|>\(|[;&|()<>]")
_VARIABLE = re.compile(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Word:
    """One word of a command.

    Attributes:
        raw: As it is written.
        value: Without its quotes; expansions stand as they are written.
        fixed: Whether it has no expansion, so that ``value`` is what the command gets.
        variables: Names of the variables it expands, those within substitutions not among them.
        inner: Commands of its command substitutions.
    """

    raw: str
    value: str
    fixed: bool = True
    variables: tuple[str, ...] = ()
    inner: tuple[Command, ...] = ()


@dataclass(frozen=True)
class Command:
    """A simple command.

    Attributes:
        line: Of its first word, from 1.
        words: Name and arguments; assignments before the name are not among them.
        assignments: Variables set by it, with their values.
        redirections: Operator and target.
        sure: Whether it is carried out whenever the script gets there: not within a condition,
            loop or function, nor after ``&&`` or ``||``.
        after: The operator before it in its list: ``&&``, ``||``, ``|`` or nothing.
    """

    line: int
    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirections: tuple[tuple[str, Word], ...] = ()
    sure: bool = True
    after: str = ""

    @property
    def name(self) -> str:
        """Its first word, or nothing for a command that only sets variables."""
        return self.words[0].value if self.words else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """All other words."""
        return self.words[1:]

    def nested(self) -> Iterator[Command]:
        """The command itself and all within its substitutions, to any depth."""
        yield self
        for word in (*self.words, *(w for _, w in self.assignments + self.redirections)):
            for command in word.inner:
                yield from command.nested()


@dataclass(frozen=True)
class Script:
    """A script that was read: its commands in order, and comments by line number from 1."""

    commands: tuple[Command, ...]
    comments: dict[int, str] = field(default_factory=dict)

    def every_command(self) -> Iterator[Command]:
        """All commands, those within substitutions too."""
        for command in self.commands:
            yield from command.nested()


def read_script(text: str, first_line: int = 1) -> Script:
    """The commands of a bash script.

    Args:
        text: The script.
        first_line: Number of its first line.
    """
    reader = _Reader(text.replace("\r\n", "\n"), first_line)
    commands, _ = reader.read(0, closed_by="")
    return Script(tuple(commands), reader.comments)


@dataclass
class _Building:
    """A command of which words are being read."""

    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    redirections: list[tuple[str, Word]] = field(default_factory=list)
    line: int = 0


def _in_test(now: _Building) -> bool:
    """Whether signs are words here: between ``[[`` and ``]]``."""
    return bool(now.words) and now.words[0].raw == "[[" and now.words[-1].raw != "]]"


def _may_calculate(now: _Building) -> bool:
    """Whether two opening parentheses are arithmetic here: a command's, or those of a loop."""
    return not now.words or (len(now.words) == 1 and now.words[0].raw in (*_ASKS, "for"))


class _Reader:
    def __init__(self, text: str, first_line: int) -> None:
        self.text = text
        self.first_line = first_line
        self.comments: dict[int, str] = {}
        self._pending: list[tuple[str, bool]] = []

    def _line(self, at: int) -> int:
        return self.first_line + self.text.count("\n", 0, at)

    def read(self, at: int, *, closed_by: str) -> tuple[list[Command], int]:
        """Commands from a place up to what closes them, and the place after that."""
        commands: list[Command] = []
        now = _Building()
        after, depth, parens, cases = "", 0, 0, 0

        def end(operator: str = "") -> None:
            nonlocal now, after
            if now.words or now.assignments or now.redirections:
                commands.append(
                    Command(
                        now.line,
                        tuple(now.words),
                        tuple(now.assignments),
                        tuple(now.redirections),
                        sure=depth == 0 and after not in ("&&", "||"),
                        after=after,
                    )
                )
                now = _Building()
                after = operator
            elif operator:
                after = operator

        while at < len(self.text):
            char = self.text[at]
            if char in " \t":
                at += 1
            elif self.text.startswith("\\\n", at):
                at += 2
            elif char == "\n":
                if now.words or now.assignments or now.redirections:
                    end()
                at = self._skip_documents(at + 1)
            elif char == "#":
                stop = self.text.find("\n", at)
                stop = len(self.text) if stop < 0 else stop
                self.comments[self._line(at)] = self.text[at:stop]
                at = stop
            elif self.text.startswith("((", at) and _may_calculate(now):
                stop, inner = self._arithmetic(at)
                told = self.text[at + 2 : max(at + 2, stop - 2)]
                variables = tuple(_VARIABLE.findall(told))
                now.words = [Word("((", "(("), Word(told, told, False, variables, tuple(inner))]
                now.line, at = self._line(at), stop
            elif not _in_test(now) and (operator := _OPERATOR.match(self.text, at)):
                sign, at = operator[0], operator.end()
                if sign in ("<(", ">("):
                    inner, stop = self.read(at, closed_by=")")
                    raw = self.text[at - 2 : stop]
                    now.line = now.line or self._line(at)
                    now.words.append(Word(raw, raw, fixed=False, inner=tuple(inner)))
                    at = stop
                elif sign[0] in "<>" or sign.startswith("&>"):
                    beside = self.text[at - len(sign) - 1 : at - len(sign)]
                    if now.words and now.words[-1].raw.isdigit() and beside not in ("", " "):
                        now.words.pop()  # the number of a stream
                    at = self._redirection(sign, at, now)
                elif sign == "(":
                    if now.words:  # a function's name
                        now = _Building()
                        stop = self.text.find(")", at)
                        at = len(self.text) if stop < 0 else stop + 1
                        at = self._into_function(at)
                        depth += 1
                    else:
                        parens += 1
                elif sign == ")":
                    if cases == 0 and parens == 0 and closed_by == ")":
                        end()
                        return commands, at
                    if cases and parens == 0:
                        now.words.insert(0, Word(CASE, CASE))
                        end()
                        after = ""
                    else:
                        parens = max(0, parens - 1)
                    end()
                else:
                    end("|" if sign in ("|", "|&") else sign if sign in ("&&", "||") else "")
                    if sign in (";", "&", ";;", ";&", ";;&"):
                        after = ""
            else:
                word, stop = self._word(at, in_test=_in_test(now))
                if not now.words and not now.assignments:
                    now.line = self._line(at)
                at = stop
                if not now.words:
                    if word.raw in _OPENS:
                        depth += 1
                        cases += word.raw == "case"
                        # What is looped over or told apart is no command, but may run some.
                        now.words.append(word)
                        continue
                    if word.raw in _CLOSES:
                        depth = max(0, depth - 1)
                        cases -= word.raw == "esac" and cases > 0
                        after = ""
                        continue
                    if word.raw == "}":
                        depth = max(0, depth - 1)
                        continue
                    if word.raw == "{":
                        depth += 1 if after in ("&&", "||") else 0
                        continue
                    if word.raw in _GOES_ON:
                        continue
                    if given := _ASSIGNMENT.match(word.raw):
                        name = re.split(r"[\[+=]", given[0])[0]
                        value, at = self._value(at - len(word.raw) + given.end(), at)
                        now.assignments.append((name, value))
                        continue
                elif len(now.words) == 1 and now.words[0].raw in _ASKS:
                    now.words.pop()
                    now.line = self._line(at)
                    if word.raw in _GOES_ON:
                        continue
                if word.raw == "in" and now.words and now.words[0].raw == "case":
                    end()
                    continue
                now.words.append(word)
        end()
        return commands, at

    def _into_function(self, at: int) -> int:
        """After a function's parentheses: past its opening brace."""
        found = re.compile(r"\s*\{").match(self.text, at)
        return found.end() if found else at

    def _value(self, at: int, end: int) -> tuple[Word, int]:
        """The value of an assignment; an array's items are one word."""
        if self.text.startswith("(", at) and at == end:
            inner, stop = self.read(at + 1, closed_by=")")
            words = [word for command in inner for word in command.words]
            return (
                Word(
                    self.text[at:stop],
                    " ".join(word.value for word in words),
                    fixed=all(word.fixed for word in words),
                    variables=tuple(v for word in words for v in word.variables),
                    inner=tuple(c for word in words for c in word.inner),
                ),
                stop,
            )
        if at == end:
            return Word("", ""), end
        return self._word(at)[0], end

    def _redirection(self, sign: str, at: int, now: _Building) -> int:
        while self.text[at : at + 1] in (" ", "\t"):
            at += 1
        if at >= len(self.text) or self.text[at] == "\n":
            return at
        if self.text.startswith("<(", at):
            inner, stop = self.read(at + 2, closed_by=")")
            raw = self.text[at:stop]
            now.redirections.append((sign, Word(raw, raw, fixed=False, inner=tuple(inner))))
            return stop
        target, at = self._word(at)
        if sign in ("<<", "<<-"):
            quoted = target.raw != target.value
            self._pending.append((target.value if quoted else target.raw, sign == "<<-"))
        else:
            now.redirections.append((sign, target))
            now.line = now.line or self._line(at)
        return at

    def _skip_documents(self, at: int) -> int:
        """Past the here-documents that begin on this line."""
        for delimiter, tabs in self._pending:
            while at < len(self.text):
                stop = self.text.find("\n", at)
                stop = len(self.text) if stop < 0 else stop
                line, at = self.text[at:stop], min(stop + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._pending = []
        return at

    def _word(self, at: int, *, in_test: bool = False) -> tuple[Word, int]:
        start, value, fixed = at, [], True
        variables: list[str] = []
        inner: list[Command] = []
        quoted = False
        while at < len(self.text):
            char = self.text[at]
            if not quoted and char in (" \t\n;" if in_test else _META):
                break
            if char == "\\":
                value.append(self.text[at + 1 : at + 2] if not quoted else self._escaped(at))
                at += 2
            elif char == '"':
                quoted = not quoted
                at += 1
            elif char == "'" and not quoted:
                stop = self.text.find("'", at + 1)
                stop = len(self.text) if stop < 0 else stop
                value.append(self.text[at + 1 : stop])
                at = stop + 1
            elif self.text.startswith("$'", at) and not quoted:
                found = re.compile(r"(?:[^\\']|\\.)*'", re.DOTALL).match(self.text, at + 2)
                stop = found.end() if found else len(self.text)
                value.append(self.text[at + 2 : stop - 1])
                at = stop
            elif char == "$" or char == "`":
                stop, commands = self._expansion(at)
                raw = self.text[at:stop]
                if len(raw) > 1:
                    fixed = False
                    inner += commands
                    if not commands:
                        variables += _VARIABLE.findall(raw)
                value.append(raw)
                at = stop
            else:
                value.append(char)
                at += 1
        if at == start:  # a sign that cannot begin a word here
            sign = self.text[at : at + 1]
            return Word(sign, sign), at + 1
        raw = self.text[start:at]
        return Word(raw, "".join(value), fixed, tuple(variables), tuple(inner)), at

    def _arithmetic(self, at: int) -> tuple[int, list[Command]]:
        """From two opening parentheses: where they are closed, and the commands within."""
        depth, place, commands = 0, at, []
        while place < len(self.text):
            if self.text.startswith("$(", place) and not self.text.startswith("$((", place):
                place, inner = self._expansion(place)
                commands += inner
                continue
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            place += 1
            if depth == 0:
                break
        return place, commands

    def _escaped(self, at: int) -> str:
        after = self.text[at + 1 : at + 2]
        return after if after in '$`"\\\n' else "\\" + after

    def _expansion(self, at: int) -> tuple[int, list[Command]]:
        """Where an expansion ends, and the commands in it."""
        if self.text[at] == "`":
            found = re.compile(r"(?:[^\\`]|\\.)*`", re.DOTALL).match(self.text, at + 1)
            stop = found.end() if found else len(self.text)
            inside = self.text[at + 1 : stop - 1]
            return stop, list(read_script(inside, self._line(at)).commands)
        if self.text.startswith("$((", at):
            return self._arithmetic(at + 1)
        if self.text.startswith("$(", at):
            before, self._pending = self._pending, []
            commands, stop = self.read(at + 2, closed_by=")")
            self._pending = before
            return stop, commands
        if self.text.startswith("${", at):
            depth, place = 1, at + 2
            while place < len(self.text) and depth:
                if self.text[place] == "\\":
                    place += 1
                elif self.text[place] == "'":
                    stop = self.text.find("'", place + 1)
                    place = stop if stop > 0 else place
                depth += {"{": 1, "}": -1}.get(self.text[place : place + 1], 0)
                place += 1
            return place, []
        found = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])").match(self.text, at)
        return (found.end() if found else at + 1), []

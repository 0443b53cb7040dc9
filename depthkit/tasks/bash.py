"""Which physical lines of a shell script are comments.

A ``#`` begins a comment only at the start of a word and outside quotes, here-documents,
``${…}`` and arithmetic, so telling comments from content needs a scanner that knows these. This
one follows what bash 5.2 does. It does not judge syntax: on a broken script it goes on to the
end, and whatever follows an unclosed quote is content.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Literal

_PLAIN = re.compile(r"[^ \t\n;&|()<>'\"`$\\]+")
_IN_DOUBLE_QUOTES = re.compile(r"[^\\\"`$]+")
_IN_BRACES = re.compile(r"[^\\\"'`$}]+")
_ANSI_QUOTE_END = re.compile(r"(?:[^\\']+|\\.)*+'", re.DOTALL)
_UNESCAPED_BACKTICK = re.compile(r"(?:[^\\`]+|\\.)*+`", re.DOTALL)
_PAREN = re.compile(r"[()]")

_COMMAND_FOLLOWS = frozenset(
    {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time"}
)
_LONGEST_ARITHMETIC = 1000


@dataclass(frozen=True)
class _HereDocument:
    delimiter: str
    quoted: bool
    strip_tabs: bool


@dataclass
class _Frame:
    """One level of nesting; ``end`` is where it stops at the latest."""

    kind: Literal["command", "substitution", "backtick", "double", "brace"]
    end: int
    word_start: bool = True
    command_position: bool = True
    openers: list[str] = field(default_factory=list)
    """Open ``(`` and ``case`` of this level: the ``)`` of a case pattern closes nothing."""
    pending: list[_HereDocument] = field(default_factory=list)
    """Here-documents whose bodies begin at the next newline."""


def comment_lines(script: str) -> frozenset[int]:
    """Line numbers, from 0, of the lines that hold a comment and nothing else.

    A shebang is a comment. A line inside a here-document or a quoted string is not, whatever
    it begins with. Lines end at a newline; a carriage return before it does not matter.
    """
    return _Scanner(script.replace("\r\n", "\n")).run()


class _Scanner:
    """One pass over a script with an explicit stack, so that no nesting is too deep."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.stack = [_Frame("command", len(text))]
        self.line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.comments: set[int] = set()
        self.no_arithmetic_before = 0

    def run(self) -> frozenset[int]:
        while len(self.stack) > 1 or self.at < self.stack[0].end:
            frame = self.stack[-1]
            if self.at >= frame.end:
                self._close_at_end(frame)
            elif frame.kind == "double":
                self._double_quotes()
            elif frame.kind == "brace":
                self._braces()
            else:
                self._command(frame)
        return frozenset(self.comments)

    # --- levels ---

    def _push(self, kind: Literal["substitution", "backtick", "double", "brace"], end: int) -> None:
        self.stack.append(_Frame(kind, end))

    def _close_at_end(self, frame: _Frame) -> None:
        """Leave a level whose text is used up: a backtick's end closes all that is open in it."""
        self.stack.pop()
        if frame.kind == "backtick":
            self.at = frame.end + 1
            self._in_word()

    def _in_word(self) -> None:
        self.stack[-1].word_start = False
        self.stack[-1].command_position = False

    def _double_quotes(self) -> None:
        end = self.stack[-1].end
        plain = _IN_DOUBLE_QUOTES.match(self.text, self.at, end)
        if plain:
            self.at = plain.end()
            return
        char = self.text[self.at]
        if char == '"':
            self.at += 1
            self.stack.pop()
        elif char == "\\":
            self.at += 2
        elif char == "`":
            self._backtick(end)
        elif self.text.startswith(("$(", "${"), self.at):
            self._dollar(end)
        else:
            self.at += 1

    def _braces(self) -> None:
        end = self.stack[-1].end
        plain = _IN_BRACES.match(self.text, self.at, end)
        if plain:
            self.at = plain.end()
            return
        char = self.text[self.at]
        if char == "}":
            self.at += 1
            self.stack.pop()
        elif char == "'":
            # Even within double quotes: bash 5.2 wants the quotes of "${x:-'…'}" to pair up.
            self._single_quotes(end)
        else:
            self._quote_or_dollar(char, end)

    def _quote_or_dollar(self, char: str, end: int) -> None:
        if char == "\\":
            self.at += 2
        elif char == '"':
            self.at += 1
            self._push("double", end)
        elif char == "`":
            self._backtick(end)
        else:
            self._dollar(end)

    def _command(self, frame: _Frame) -> None:
        char = self.text[self.at]
        if char == "\n":
            self.at += 1
            frame.word_start = frame.command_position = True
            self._here_document_bodies(frame)
        elif char in " \t":
            self.at += 1
            frame.word_start = True
        elif char == "#" and frame.word_start:
            self._comment(frame.end)
        elif char in ";&|":
            self.at += 1
            frame.word_start = frame.command_position = True
        elif char == "(":
            self._open_parenthesis(frame)
        elif char == ")":
            self._close_parenthesis(frame)
        elif char in "<>":
            self._redirection(frame)
        elif char == "\\" and self.text.startswith("\\\n", self.at):
            self.at += 2  # the line goes on: what stood before it decides whether a word is open
        elif char == "'":
            self._single_quotes(frame.end)
            self._in_word()
        elif char in '\\"`$':
            self._in_word()
            self._quote_or_dollar(char, frame.end)
        else:
            self._plain_word(frame)

    # --- parts ---

    def _comment(self, end: int) -> None:
        line = bisect.bisect_right(self.line_starts, self.at) - 1
        if not self.text[self.line_starts[line] : self.at].strip(" \t"):
            self.comments.add(line)
        newline = self.text.find("\n", self.at, end)
        self.at = end if newline < 0 else newline

    def _single_quotes(self, end: int) -> None:
        closing = self.text.find("'", self.at + 1, end)
        self.at = end if closing < 0 else closing + 1

    def _backtick(self, end: int) -> None:
        """Enter a backtick substitution: it ends at the next backtick, whatever is open then."""
        closing = _UNESCAPED_BACKTICK.match(self.text, self.at + 1, end)
        self.at += 1
        self._push("backtick", closing.end() - 1 if closing else end)

    def _dollar(self, end: int) -> None:
        text = self.text
        if text.startswith("$((", self.at) and self._skip_arithmetic(self.at + 1, end):
            return
        following = text[self.at + 1 : self.at + 2]
        if following == "(":
            self.at += 2
            self._push("substitution", end)
        elif following == "{":
            self.at += 2
            self._push("brace", end)
        elif following == "'":
            closing = _ANSI_QUOTE_END.match(text, self.at + 2, end)
            self.at = closing.end() if closing else end
        elif following and following in "#?!$*@-":
            self.at += 2
        else:
            self.at += 1

    def _skip_arithmetic(self, opening: int, end: int) -> bool:
        """Pass over ``((…))`` at ``opening`` if it is arithmetic, as bash decides it.

        It is when the parenthesis that closes the inner one is followed by another; otherwise
        it is a subshell within a subshell. The look ahead is bounded, so that a hostile script
        takes no more than linear time.
        """
        if opening < self.no_arithmetic_before:
            return False
        depth = 0
        limit = min(end, opening + _LONGEST_ARITHMETIC)
        for match in _PAREN.finditer(self.text, opening + 1, limit):
            depth += 1 if match.group() == "(" else -1
            if depth == 0:
                if self.text.startswith(")", match.end()) and match.end() < end:
                    self.at = match.end() + 1
                    return True
                return False
        self.no_arithmetic_before = limit
        return False

    def _open_parenthesis(self, frame: _Frame) -> None:
        if self.text.startswith("((", self.at) and self._skip_arithmetic(self.at, frame.end):
            frame.word_start = True
            return
        self.at += 1
        frame.openers.append("(")
        frame.word_start = frame.command_position = True

    def _close_parenthesis(self, frame: _Frame) -> None:
        self.at += 1
        if frame.openers:
            if frame.openers[-1] == "(":
                frame.openers.pop()
            frame.word_start = frame.command_position = True
        elif frame.kind == "substitution":
            self.stack.pop()
            # A body that has not begun when the substitution closes follows the whole line.
            outer = next(f for f in reversed(self.stack) if f.kind not in ("double", "brace"))
            outer.pending.extend(frame.pending)
        else:
            frame.word_start = True

    def _plain_word(self, frame: _Frame) -> None:
        match = _PLAIN.match(self.text, self.at, frame.end)
        assert match is not None  # every other character has its own branch
        word, whole = match.group(), frame.word_start
        self.at = match.end()
        if self.at < frame.end and self.text[self.at] not in " \t\n;&|()<>":
            whole = False
        in_case = bool(frame.openers) and frame.openers[-1] == "case"
        follows = False
        if whole and frame.command_position and word == "case":
            frame.openers.append("case")
        elif whole and in_case and word == "in" and not frame.command_position:
            follows = True
        elif whole and in_case and word == "esac" and frame.command_position:
            frame.openers.pop()
        elif whole and frame.command_position:
            follows = word in _COMMAND_FOLLOWS
        frame.word_start = False
        frame.command_position = follows

    # --- redirections and here-documents ---

    def _redirection(self, frame: _Frame) -> None:
        frame.word_start = True
        if self.text.startswith("<<<", self.at):
            self.at += 3
        elif self.text.startswith("<<", self.at):
            self._here_document_operator(frame)
        else:
            self.at += 1

    def _here_document_operator(self, frame: _Frame) -> None:
        text, end = self.text, frame.end
        self.at += 2
        strip_tabs = text.startswith("-", self.at)
        self.at += strip_tabs
        while self.at < end and text[self.at] in " \t":
            self.at += 1
        delimiter: list[str] = []
        quoted = False
        while self.at < end and text[self.at] not in " \t\n;&|()<>":
            char = text[self.at]
            if char == "$" and text[self.at + 1 : self.at + 2] in ("'", '"'):
                self.at += 1
            elif char in "'\"":
                closing = text.find(char, self.at + 1, end)
                closing = end if closing < 0 else closing
                delimiter.append(text[self.at + 1 : closing])
                self.at = min(closing + 1, end)
                quoted = True
            elif char == "\\":
                delimiter.append(text[self.at + 1 : self.at + 2])
                self.at += 2
                quoted = True
            else:
                delimiter.append(char)
                self.at += 1
        if delimiter or quoted:
            frame.pending.append(_HereDocument("".join(delimiter), quoted, strip_tabs))

    def _here_document_bodies(self, frame: _Frame) -> None:
        while frame.pending:
            self._skip_body(frame.pending.pop(0), frame)

    def _skip_body(self, document: _HereDocument, frame: _Frame) -> None:
        """Pass over the body that begins here, with its last line."""
        text, end = self.text, frame.end
        joined = ""
        while self.at < end:
            newline = text.find("\n", self.at, end)
            stop = end if newline < 0 else newline
            line = text[self.at : stop]
            if document.strip_tabs and not joined:
                line = line.lstrip("\t")
            if not document.quoted and newline >= 0 and _ends_with_open_backslash(line):
                joined += line[:-1]
                self.at = stop + 1
                continue
            line = joined + line
            if line == document.delimiter:
                self.at = min(stop + 1, end)
                return
            if (
                frame.kind == "substitution"
                and not joined
                and line.startswith(document.delimiter)
                and ")" in line[len(document.delimiter) :]
            ):
                # `EOF)` ends the body and the substitution, as bash lets it.
                self.at = stop - len(line) + len(document.delimiter)
                return
            joined = ""
            self.at = min(stop + 1, end)


def _ends_with_open_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1

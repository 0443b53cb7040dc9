"""What can be read off one check script without running it (Depth paper, Appendix F)."""

from __future__ import annotations

import re

from depthkit.tasks.findings import Finding
from depthkit.tasks.reading import CHECKS, PATH, READERS, CheckScript, names_used, run_by, tail_of
from depthkit.tasks.words import CASE, Command

_WITH_PATTERN = ("expect_out", "expect_no_out", "expect_fail")
_WITH_COMMAND = ("expect_ok", *_WITH_PATTERN)
_TESTS = ("[[", "[", "test", "((", CASE)
_FILE_TOOLS = frozenset(
    {"cat", "head", "tail", "grep", "egrep", "fgrep", "zgrep", "zcat", "sed", "awk", "cut", "jq"}
    | {"strings", "sort", "uniq", "diff", "cmp", "less", "more", "tr", "column", "find"}
)
_WRITERS = frozenset(
    {"tee", "cp", "mv", "touch", "mkdir", "install", "ln", "truncate", "dd", "rm", "rmdir"}
    | {"chmod", "chown"}
)
_IDLE = frozenset({"true", "false", ":", "echo", "printf"})
_SOFTWARE_FILES = ("/proc/", "/sys/", "/usr/", "/var/log/")
_MEASURED = re.compile(
    r"-?\d+(\.\d+)?%?|v?\d+(\.\d+){1,4}([-+~]\w+)*|[0-9a-f]{12,}|\d{4}-\d\d-\d\d.*|\d+ ?[KMG]i?B?",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"(?<![\w.\\])(?:\d+(?:\.\d+)+|\d{2,}|[0-9a-f]{12,})(?![\w.]*\})")
_CLASS = re.compile(r"\[:\w+:\]")
_COMPARED = re.compile(r"(?:[=!]=|[<>]=?)\s*(\d{2,})\b|(?<![\w$.])(\d{2,})\s*(?:[=!]=|[<>]=?)")
_EQUALS = re.compile(r"[=!]=\s*(\d+)\b|(?<![\w$.])(\d+)\s*[=!]=")
_EQUAL = frozenset({"=", "==", "!=", "-eq", "-ne"})
_HERE = ("127.0.0.1", "0.0.0.0")  # noqa: S104 - an address in a script, not one to bind to
_PRINTED_BY = re.compile(r"#\s*printed by\s+(\S+)", re.IGNORECASE)


# --- the rules ---


def review_checks(checks: CheckScript) -> list[Finding]:
    """All findings of one check script, in the order of lines."""
    own = [command for command in checks.script.commands if command.name in CHECKS]
    if not own and not any(command.name in CHECKS for command in checks.all):
        checks.found(1, "no-check", "the script has no check")
    seen: dict[str, int] = {}
    for command in own:
        name = checks.resolve(command.arguments[0]) if command.arguments else None
        if name and command.name.startswith("expect_"):
            if name in seen:
                checks.found(command.line, "name-twice", f"{name} is the name of line {seen[name]}")
            seen.setdefault(name, command.line)
    for command in checks.all:
        if command.name in CHECKS:
            _can_fail(checks, command)
            _expected(checks, command)
            _strings(checks, command)
            _process(checks, command)
        elif command.name in READERS:
            _reader_arguments(checks, command)
        elif command.name in _TESTS or command.name.endswith("grep"):
            _compared(checks, command)
        report_access(checks, command)
        _leftovers(checks, command)
    _names(checks)
    return sorted(checks.findings)


def _can_fail(checks: CheckScript, command: Command) -> None:
    line = command.line
    if command.name == "pass":
        if (command.sure and command in checks.script.commands) or _idle_before(checks, command):
            checks.found(line, "cannot-fail", "passes whatever the state is")
        elif command.arguments and not _may_fail(checks, command.arguments[0].value):
            told = f"nothing fails {command.arguments[0].value} where it does not pass"
            checks.found(line, "cannot-fail", told)
        return
    if command.name == "expect_eq" and len(command.arguments) > 2:
        _, actual, expected = command.arguments[:3]
        if actual.raw and checks.source(actual) == checks.source(expected):
            checks.found(line, "cannot-fail", f"compares {actual.raw} with itself")
    if command.name not in _WITH_COMMAND:
        return
    words = tail_of(command)
    if not words:
        checks.found(line, "arguments", f"{command.name} needs -- and a command")
        return
    run = list(run_by(checks, words, line))
    if run and all(_idle(checks, each) for each in run):
        checks.found(line, "cannot-fail", f"runs {run[0].name} only, which looks at nothing")
    if command.name == "expect_ok" and run and run[-1].after == "||" and run[-1].name in _IDLE:
        checks.found(line, "cannot-fail", f"|| {run[-1].name} makes the command succeed")
    if command.name == "expect_out" and len(command.arguments) > 1:
        pattern = checks.resolve(command.arguments[1])
        if pattern is not None and _matches_nothing(pattern):
            checks.found(line, "cannot-fail", f"the pattern {pattern!r} matches any line")


def _idle(checks: CheckScript, command: Command) -> bool:
    """Whether a command's outcome is written in: it prints or compares what is fixed."""
    fixed = [checks.resolve(word) for word in command.arguments]
    if None in fixed or command.redirections:
        return False
    if command.name in ("[", "test", "[["):
        # Letters that ask for the state of a file, such as -e.
        return not any(re.fullmatch(r"-[a-mo-yA-Z]", str(each)) for each in fixed)
    return command.name in _IDLE


def _idle_before(checks: CheckScript, command: Command) -> bool:
    """Whether what decides on a pass, the command before it, is idle."""
    among = [n for n, each in enumerate(checks.script.commands) if each is command]
    before = checks.script.commands[among[0] - 1] if among and among[0] else None
    if before is None or before.sure or command.after == "||":
        before = before if before is not None and command.after == "&&" else None
    return before is not None and before.name not in ("echo", "printf") and _idle(checks, before)


def _may_fail(checks: CheckScript, name: str) -> bool:
    """Whether a check of this name can fail somewhere in the script."""
    others = CHECKS - {"pass"}
    return any(
        c.name in others and c.arguments and c.arguments[0].value == name for c in checks.all
    )


def _matches_nothing(pattern: str) -> bool:
    try:
        # The classes of extended regular expressions, such as [:space:], are none of Python's.
        return re.search(_CLASS.sub(r"\\w", pattern), "") is not None
    except (re.error, RecursionError):
        return False


def _expected(checks: CheckScript, command: Command) -> None:
    if command.name == "expect_eq" and len(command.arguments) > 2:
        _, actual, expected, *rest = command.arguments
        kind = rest[0].value if rest else "text"
        value = checks.resolve(expected)
        if value is None and checks.from_reader(expected):  # The two the other way round.
            actual, value = expected, checks.resolve(actual)
        if value is None:
            return
        items = re.split(r"[,\s]+", value) if kind in ("set", "seq") else [value]
        read = checks.from_reader(actual)
        for item in filter(None, items):
            # A requirement can be that something is so, or that nothing is left.
            if not read and (kind == "bool" or item == "0"):
                continue
            if not checks.stated(item):
                checks.found(
                    command.line,
                    "expected-written-in",
                    f"the expected value {item!r} is written in",
                )
    elif command.name in _WITH_PATTERN and len(command.arguments) > 1:
        pattern = re.sub(r"\\([.])", r"\1", checks.resolve(command.arguments[1]) or "")
        numbers = _NUMBERS.findall(pattern)
        if any(each.name in READERS for each in run_by(checks, tail_of(command), command.line)):
            # Any number that stands in a report is an answer.
            numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)*", _plain(pattern))
        for number in numbers:
            if not checks.stated(number) and not _printed_by(checks, command.line):
                checks.found(
                    command.line, "expected-written-in", f"the pattern has {number!r} written in"
                )
    if command.name in _WITH_COMMAND:
        for each in run_by(checks, tail_of(command), command.line):
            if each.name in _TESTS or each.name.endswith("grep"):
                _compared(checks, each)


def _compared(checks: CheckScript, command: Command) -> None:
    """Values within a test of the script's own, or a search that decides."""
    values: list[str] = []
    words = command.arguments
    # A single digit is a requirement as often as not, but no answer of a report is.
    read = any(checks.from_reader(word) for word in words)
    if command.name == "((" and words:
        among = (_COMPARED, _EQUALS) if read else (_COMPARED,)
        values = [a or b for each in among for a, b in each.findall(words[0].value)]
    elif command.name in _TESTS:
        least = 1 if read and any(word.value in _EQUAL for word in words) else 2
        for before, word in zip((None, *words), words, strict=False):
            if before is not None and before.value == "=~" and word.fixed:
                values += _NUMBERS.findall(word.value)
            elif word.fixed and len(word.value) >= least and _MEASURED.fullmatch(word.value):
                values.append(word.value)
    elif command.after == "|" and any(re.match(r"-\w*q", word.value) for word in words):
        patterns = [word for word in words if not word.value.startswith("-")][:1]
        values = [n for word in patterns for n in _NUMBERS.findall(word.value)]
    for value in values:
        if value[0] != "-" and value not in _HERE and not checks.stated(value):
            checks.found(
                command.line, "expected-written-in", f"compares with {value!r}, written in"
            )


def _printed_by(checks: CheckScript, line: int) -> bool:
    """Whether a comment there, or on the line before, names software that is none of the task's."""
    for at in (line, line - 1):
        said = _PRINTED_BY.search(checks.script.comments.get(at, ""))
        if said and said[1].rsplit("/", 1)[-1] not in checks.own_scripts:
            return True
    return False


def _strings(checks: CheckScript, command: Command) -> None:
    if command.name not in _WITH_COMMAND or _printed_by(checks, command.line):
        return
    run = list(run_by(checks, tail_of(command), command.line))
    if not run or not all(c.name in _FILE_TOOLS for c in run):
        return
    files = [path for c in run for word in c.arguments for path in PATH.findall(word.value)]
    if files and all(path.startswith(_SOFTWARE_FILES) for path in files):
        return
    patterns = [command.arguments[1]] if command.name in _WITH_PATTERN else []
    for each in run:
        if each.name.endswith("grep"):
            patterns += [w for w in each.arguments if not w.value.startswith("-")][:1]
    for pattern in patterns:
        text = checks.resolve(pattern)
        for string in re.findall(r"[^\W\d_][\w-]{2,}", _plain(text or "")):
            if not checks.stated(string):
                checks.found(
                    command.line, "string-unknown", f"{string!r} is looked for, but is not stated"
                )


def _plain(pattern: str) -> str:
    """A pattern without what only patterns have."""
    return re.sub(r"\[\[?:?[^]]*\]\]?|\\[a-zA-Z]|\{\d*,?\d*\}", " ", pattern)


def _process(checks: CheckScript, command: Command) -> None:
    if command.name not in ("expect_proc", "expect_proc_arg"):
        return
    if not re.search(r"\b(process|daemon|worker|running)\w*", checks.instruction, re.IGNORECASE):
        checks.found(
            command.line,
            "process-not-asked",
            "the instruction asks for no process; talk to the service with its own client",
        )


def _reader_arguments(checks: CheckScript, command: Command) -> None:
    wanted = READERS[command.name]
    if len(command.arguments) != wanted:
        checks.found(command.line, "arguments", f"{command.name} takes {wanted} arguments")
        return
    if command.name == "field":
        return
    for word in command.arguments[1::2]:
        value = checks.resolve(word)
        if value is not None and not re.fullmatch(r".+:[1-9]\d*", value):
            checks.found(command.line, "arguments", f"{value!r} is no NAME:POS")


def report_access(checks: CheckScript, command: Command) -> None:
    """Whether another command than a reader looks into a report file."""
    allowed = (*READERS, *_TESTS, "expect_file", "for", "local", "declare", "readonly", "rm")
    words = [] if command.name in allowed else list(command.words)
    if any(each.name in READERS for each in run_by(checks, tail_of(command), command.line)):
        words = []
    for sign, word in command.redirections:
        words += [word] if sign == "<" else []
    for word in words:
        value = checks.resolve(word) or (word.value if word.fixed else "")
        text = value or word.value
        for report in checks.reports:
            if re.search(rf"(?<![\w./-]){re.escape(report)}(?![\w/-])", text) and not word.inner:
                checks.found(
                    command.line,
                    "report-not-through-reader",
                    f"{command.name or '<'} looks into {report}",
                )


def _leftovers(checks: CheckScript, command: Command) -> None:
    targets = [word for sign, word in command.redirections if sign[0] in ">&" and sign != ">&"]
    if command.name in _WRITERS:
        targets += [word for word in command.arguments if not word.value.startswith("-")]
    for each in (command, *run_by(checks, tail_of(command), command.line)):
        if each is not command:
            if each.name in _WRITERS:
                targets += [w for w in each.arguments if not w.value.startswith("-")]
            targets += [w for sign, w in each.redirections if sign[0] in ">&" and sign != ">&"]
        options = [word.value for word in each.arguments]
        if each.name == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", o) for o in options):
            targets += each.arguments
        if each.name in ("curl", "wget"):
            pairs = zip(options, each.arguments[1:], strict=False)
            targets += [word for option, word in pairs if option in ("-o", "-O", "--output")]
    for word in targets:
        path = checks.resolve(word)
        if path and path.startswith("/") and not path.startswith("/dev/"):
            checks.found(command.line, "leaves-something", f"writes to {path}")


def _names(checks: CheckScript) -> None:
    used = names_used(checks)
    for name, (line, key) in used.items():
        if not (checks.key_stated(name) if key else checks.name_stated(name)):
            what = f"the field or column {name!r}" if key else repr(name)
            checks.found(line, "name-not-stated", f"{what} is relied on, but not stated")
    ports = {name for name in used if name.isdigit()}
    text = " ".join(word.value for command in checks.all for word in command.words)
    for name in checks.names:
        if name in used:
            continue
        at = next((c.line for c in checks.all if any(name in w.value for w in c.words)), 1)
        if not checks.stated(name):
            checks.found(at, "name-not-stated", f"{name!r} is declared, but not stated")
        is_port = name in ports or re.search(rf"(?:-p ?|-P ?|:|port[= ]){re.escape(name)}\b", text)
        if _MEASURED.fullmatch(name) and not is_port and not re.fullmatch(r"(\d+\.){3}\d+", name):
            checks.found(at, "measured-name", f"{name!r} looks like a value to be measured")

"""What is a comment in a shell script, by a table of cases and by asking bash itself."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthkit.tasks.bash import comment_lines
from depthkit.tasks.work import work_of_script

# Each case: lines of a script; those that are comments and nothing else begin with the mark.
MARK = "%"
CASES = {
    "shebang and plain comments": "%#!/bin/bash\n%# one\necho a # two\n  echo b\n%\t # three",
    "hash within a word": "echo a#b\necho a\\\n#b\n%# c",
    "hash after a continuation and a blank": "echo a \\\n%  # c\necho b",
    "comment that ends in a backslash": "%# a \\\necho b",
    "apostrophe in a comment": "echo a # it's\n%# b",
    "quote in a comment between commands": "a; # \"\n%# b\nb &# '\n%# c",
    "single quotes": "echo 'a\n# b\n'\n%# c",
    "single quotes end at the next one": "echo 'a\\'\n%# b",
    "double quotes": 'echo "a \\"\n# b\n" c\n%# d',
    "ansi-c quotes": "echo $'it\\'s\n# a\n'\n%# b",
    "locale quotes": 'echo $"a\n# b\n"\n%# c',
    "escaped quote": "echo it\\'s\n%# a",
    "number of arguments": "echo $#\n%# a\necho $# # it's\n%# b",
    "length and prefix removal": "echo ${#x} ${x#y} ${x##*/} ${x%%#*}\n%# a",
    "braces over lines": "echo ${x:-\n# a\n}\n%# b",
    "braces with quotes": "echo \"${x:-'}'}\" ${x#'}'}\n%# a",
    "substitution": "x=$(\n%# a\necho b # it's\n)\n%# c",
    "substitution in quotes": 'x="$(\n%# a\necho "b\n# c\n"\n)\n# d\n"\n%# e',
    "case in a substitution": "x=$(case $y in\n%# a\n1) b ;;\n(2) c ;;\nesac\n)\n%# d\n'\n# '",
    "function in a substitution": "x=$(f() { case $1 in a) :;; esac; }; f 'b\n# c\n')\n%# d",
    "word case that opens nothing": "x=$(echo case in)\necho 'a\n# b'\n%# c",
    "subshell in a substitution": 'x="$( (a) )\n# b\n"\n%# c',
    "substitution with two parentheses": 'x="$((echo a); echo b)\n# c\n"\n%# d',
    "backticks": "x=`echo a # it's`\n%# b\nx=`\n%# c\n`",
    "backtick comment in a command": "apt-get install a `# it's` \\\n  b\n%# c",
    "escaped backtick": "x=`echo \\`echo a\\``\n%# b",
    "backticks end what is open in them": "x=`echo '`\n%# a",
    "here-document": "cat <<EOF\n# a\n\nEOF\n%# b",
    "here-document with quoted delimiter": "cat <<'EOF' > f\n# a\n$(\nEOF\n%# b",
    "here-document with double quotes": 'cat <<"END OF IT"\n# a\nEND\nEND OF IT\n%# b',
    "here-document with escaped delimiter": "cat <<\\EOF\n# a\nEOF\n%# b",
    "here-document with ansi-c delimiter": "cat <<$'EOF'\n# a\nEOF\n%# b",
    "here-document with blank before delimiter": "cat << EOF\n# a\nEOF\n%# b",
    "here-document with tabs": "cat <<-EOF\n\t# a\n\tEOF\n%\t# b",
    "tabs only where the dash allows": "cat <<EOF\n# a\n\tEOF\n# b\nEOF\n%# c",
    "delimiter must be the whole line": "cat <<EOF\n# a\nEOF \n EOF\n# b\nEOF\n%# c",
    "several here-documents": "cat <<A <<'B' | c # it's\n# a\nB\nA\n# b\nB\n%# c",
    "command goes on after the operator": 'cat <<EOF | d "e\n# f\n"\n# g\nEOF\n%# h',
    "joined lines do not end it": "cat <<EOF\na\\\nEOF\n# b\nEOF\n%# c",
    "but with quotes they do": "cat <<'EOF'\na\\\nEOF\n%# b",
    "joined delimiter": "cat <<EOF\n# a\nE\\\nOF\n%# b",
    "empty delimiter": "cat <<''\n# a\n\n%# b",
    "here-document in a substitution": 'x="$(cat <<EOF\n# a\nEOF\n)"\n%# b',
    "here-document closed with it": "x=$(cat <<EOF\n# a\nEOF)\n%# b",
    "here-document after its substitution": "x=$(cat <<EOF)\n# a\nEOF\n%# b",
    "here-document of a pipe into a group": "cat <<A | (\n# a\nA\n%# b\ncat)",
    "here-document in a loop": "for x in 1; do cat <<E\n# a\nE\n%# b\ndone",
    "unfinished here-document": "cat <<EOF\n# a\n",
    "here-string": 'cat <<< "a"\n%# b\ncat <<<EOF\n%# c\nEOF',
    "shift in arithmetic": "echo $((1<<2))\n%# a\n((x = 1 << EOF))\n%# b",
    "shift in a loop head": "for ((i=0; i<1<<2; i++)); do\n%# a\ndone",
    "base in arithmetic": "((\nx = 16#ff\n))\n%# a\necho $(( 2#1 )) # it's\n%# b",
    "array": "a=(\n%# one\n1 # it's\n)\n%# b",
    "test": '[[ $a == "#"* ]]\n%# b\n[[ $a =~ ^#.*$ ]]\n%# c',
    "process substitution": "diff <(\n%# a\nb) <(c) # it's\n%# d",
    "unclosed quote": "echo 'a\n# b\n\n# c",
    "stray closings": "fi ) } esac\n%# a",
    "windows line ends": "%#!/bin/bash\r\ncat <<EOF\r\n# a\r\nEOF\r\n%# b\r",
    "only comments": "%# a\n%# b",
    "empty": "",
}


@pytest.mark.parametrize("marked", CASES.values(), ids=CASES.keys())
def test_comment_lines_of(marked: str) -> None:
    marks = {number for number, line in enumerate(marked.split("\n")) if line[:1] == MARK}
    script = "\n".join(line.removeprefix(MARK) for line in marked.split("\n"))
    assert comment_lines(script) == marks


FRAGMENTS = (
    "echo a",
    "# c",
    "#",
    "  # it's",
    "\n",
    "\n",
    " ",
    "'",
    "'x\n# y\n'",
    '"',
    '"a\n# b"',
    "$(",
    ")",
    "{ ",
    "}",
    "\\\n",
    "\\",
    "$#",
    "${x#y}",
    "a#b",
    "<<EOF\n# t\nEOF\n",
    "<<-'E'\n\t# u\n\tE\n",
    "<<<",
    "cat <<A <<B\n# 1\nA\n# 2\nB\n",
    "$((1<<2))",
    "((1<<2))",
    "case x in\n",
    "x)",
    "(y) ",
    ";;",
    "esac",
    "\n# z\n",
    "if true; then",
    "fi",
    "done",
    "; ",
    "&& ",
    "$'it\\'s'",
    "$'\n# q'",
    '"$(echo "# x\n")"',
    '"${x:-\n# in\n}"',
    "x=(\n",
    "EOF\n",
    '"$(cat <<E\n# h\nE\n)"',
    "cat <<E\na\\\nE\nE\n",
)


def _as_bash_reads_it(script: str) -> str | None:
    """The script as the body of a function, printed again by bash; None if it does not parse."""
    result = subprocess.run(
        ["bash", "-c", 'eval "$(cat)" && declare -f f'],
        input=f"f() {{\n{script}\n:\n}}\n",
        capture_output=True,
        text=True,
        timeout=20,
    )
    return result.stdout if result.returncode == 0 and not result.stderr else None


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8).map("".join))
def test_bash_agrees_on_what_is_a_comment(script: str) -> None:
    """Comment lines can be emptied without a change of meaning, other lines with # cannot."""
    meaning = _as_bash_reads_it(script)
    if meaning is None:
        return
    lines = script.split("\n")
    comments = comment_lines(script)

    def without(numbers: frozenset[int]) -> str:
        return "\n".join("" if number in numbers else line for number, line in enumerate(lines))

    assert _as_bash_reads_it(without(comments)) == meaning
    for number, line in enumerate(lines):
        if number not in comments and line.lstrip(" \t").startswith("#"):
            assert _as_bash_reads_it(without(frozenset({number}))) != meaning


@settings(max_examples=300)
@given(st.text(alphabet="#'\"`$(){}<>\\\n\t -E;case in|&x", max_size=200))
def test_any_text_is_read_to_its_end(script: str) -> None:
    assert all(
        line.lstrip(" \t").startswith("#")
        for number, line in enumerate(script.split("\n"))
        if number in comment_lines(script)
    )


@pytest.mark.parametrize(
    "piece",
    ["$(", "((", "$((", '"${', "`", "<<E\n", "case x in ", '"$(', "$'", "`#", "((a)((", "#\n"],
)
def test_deep_or_repeated_constructs_take_little_time(piece: str) -> None:
    script = piece * (300_000 // len(piece))
    # pytest-timeout is the judge: quadratic time would take hours here.
    assert len(comment_lines(script)) in {0, 1, 150_000}


def test_lines_are_those_that_are_neither_blank_nor_comment() -> None:
    script = (
        "#!/bin/bash\n\n# comment\nset -e\ncat > f.py <<'EOF'\n# content\n\nx = 1\nEOF\n"
        "make \\\n  all\n   \n"
    )
    assert work_of_script(script).lines == 7

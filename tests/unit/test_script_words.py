"""Scripts are told apart into commands and words as bash does."""

from __future__ import annotations

import pytest

from depthkit.tasks.words import read_script


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("a b 'c d' \"e f\" g\\ h", [["a", "b", "c d", "e f", "g h"]]),
        ("a; b && c || d | e &", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("a \\\n b # c d\nd#e", [["a", "b"], ["d#e"]]),
        ("a >f 2>&1 <g b", [["a", "b"]]),
        ("a <<E b\nx 'y\nE\nc", [["a", "b"], ["c"]]),
        ("a <<-'E'\n\tx $(y\n\tE\nc", [["a"], ["c"]]),
        ("a <<<'b c' d", [["a", "d"]]),
        ("f() { a b; }\nf", [["a", "b"], ["f"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while ! a; do b; done <f", [["a"], ["b"]]),
        (
            "case $x in p|q) a ;; *) b ;; esac\nc",
            [["case", "$x"], ["p"], ["case)", "q"], ["a"], ["case)", "*"], ["b"], ["c"]],
        ),
        (
            "[[ a == (b|c) && $d > e ]] && f",
            [["[[", "a", "==", "(b|c)", "&&", "$d", ">", "e", "]]"], ["f"]],
        ),
        ("(a b); { c; }", [["a", "b"], ["c"]]),
        ("X=1 Y='a b' c", [["c"]]),
        ("a $'b\\'c' d", [["a", "b\\'c", "d"]]),
        ("a ${b:-c d} e", [["a", "${b:-c d}", "e"]]),
        ("a 'unclosed\nb", [["a", "unclosed\nb"]]),
        ("", []),
        ("x=\\", []),
        ("a\r\nb\r\n", [["a"], ["b"]]),
        ("((a > b)) && c", [["((", "a > b"], ["c"]]),
        ("if (($(a $(b)) > 2)); then c; fi", [["((", "$(a $(b)) > 2"], ["c"]]),
        (
            "for ((i = 0; i < (3); i++)); do a; done\nb",
            [["((", "i = 0; i < (3); i++"], ["a"], ["b"]],
        ),
    ],
)
def test_commands_and_words(script: str, commands: list[list[str]]) -> None:
    found = [[word.value for word in each.words] for each in read_script(script).commands]
    assert [words for words in found if words] == commands


def test_substitutions_are_read_to_any_depth() -> None:
    script = read_script('a "$(b "$(c \')\' `d e`)")" <(f)\ng=$(h)')
    assert [each.name for each in script.every_command()] == ["a", "b", "c", "d", "f", "", "h"]


def test_lines_and_certainty_are_known() -> None:
    script = read_script("a\n\nif b\nthen\n  c\nfi\nd && e\nf <<E\n#\nE\n# g\nh\nk() {\n  l\n}\nm")
    assert [(each.line, each.name, each.sure) for each in script.commands] == [
        (1, "a", True),
        (3, "b", False),
        (5, "c", False),
        (7, "d", True),
        (7, "e", False),
        (8, "f", True),
        (12, "h", True),
        (14, "l", False),
        (16, "m", True),
    ]
    assert script.comments == {11: "# g"}


def test_what_a_word_expands_is_known() -> None:
    (command,) = read_script("a 'x$y' \"$y ${z%.*}\" $(b)").commands
    _, fixed, varying, substituted = command.words
    assert (fixed.fixed, fixed.value) == (True, "x$y")
    assert (varying.fixed, varying.variables) == (False, ("y", "z"))
    assert not substituted.fixed
    assert [each.name for each in substituted.inner] == ["b"]

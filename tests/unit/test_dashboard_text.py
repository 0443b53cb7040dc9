"""Text out of containers becomes HTML in which nothing but colours is left of what it could do."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthkit.dashboard import text

TAGS = re.compile(r"<[^>]*>")
ALLOWED = re.compile(r'<span class="(?:t-[a-z]+\d*)(?: t-[a-z]+\d*)*">|</span>|<mark>|</mark>')


def test_markup_is_shown_and_not_run():
    assert text.plain("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert "<img" not in text.terminal("\x1b[31m<img src=x onerror=alert(1)>\x1b[0m")


def test_one_line_may_stand_in_an_attribute_and_a_value_comes_back_as_it_was():
    odd = "a\r\n\x1b[1m\u202e\"<'&\tb"
    assert text.plain(odd) == "a\u240d\u240a\u241b[1m\u2039202E\u203a&quot;&lt;&#x27;&amp; b"
    assert unescape(text.exact(odd)) == odd
    assert "\n" not in text.exact(odd)


def test_colours_become_classes():
    assert text.terminal("a\x1b[1;31mred\x1b[0mb") == 'a<span class="t-bold t-f1">red</span>b'
    assert text.terminal("\x1b[38;5;208mx") == '<span class="t-f208">x</span>'
    assert text.terminal("\x1b[38;2;255;0;0mx") == '<span class="t-f196">x</span>'
    assert text.terminal("\x1b[97;44mx\x1b[39my") == (
        '<span class="t-f15 t-b4">x</span><span class="t-b4">y</span>'
    )


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[2J",
        "\x1b[10;10H",
        "\x1b[?1049h",
        "\x1b]8;;https://evil.example\x1b\\",
        "\x1b]0;title\x07",
        "\x1b]52;c;Zm9v\x07",
        "\x1bPq#0\x1b\\",
        "\x1b[>4;1m",
    ],
)
def test_sequences_that_do_more_are_shown(sequence: str):
    shown = text.terminal(f"before{sequence}after")
    assert shown.startswith('before<span class="t-esc"><span class="t-ctl">\u241b</span>')
    assert shown.endswith("</span>after")
    assert "\x1b" not in shown
    assert "href" not in shown


def test_an_unfinished_link_does_not_swallow_the_lines_below():
    shown = text.terminal("\x1b]8;;https://evil.example\nall of this\nstays")
    assert "all of this\nstays" in TAGS.sub("", shown)


def test_characters_that_move_or_hide_are_shown():
    shown = text.terminal("a\rb\x08c\x9b2J\u202ed\u200be")
    assert (
        TAGS.sub("", shown) == "a\u240db\u2408c\u2039009B\u203a2J\u2039202E\u203ad\u2039200B\u203ae"
    )
    assert text.terminal("line\r\nnext") == "line\nnext"


def test_half_a_surrogate_does_not_stop_a_page():
    assert (
        text.block("x\ud800y").encode()
        == '<span class="t-ctl">\u2039D800\u203a</span>'.join("xy").encode()
    )


def test_what_is_searched_is_marked_in_any_case_and_before_escaping():
    assert text.block("a <B> c <b>", "<b>") == "a <mark>&lt;B&gt;</mark> c <mark>&lt;b&gt;</mark>"
    assert text.block("amp & lt", "amp") == "<mark>amp</mark> &amp; lt"
    assert text.count("Error error ERROR", "error") == 3


def test_an_excerpt_is_the_line_around_the_first_place():
    assert text.excerpt("one\ntwo needle three\nfour", "NEEDLE") == "two <mark>needle</mark> three"


def test_blank_lines_of_a_screen_are_counted():
    assert text.without_blank_end("root# \n\n\n") == ("root#", 3)


def test_a_long_line_is_quick():
    out = text.terminal("\x1b[31m" + "x" * 4_000_000 + "\x1b]8;;" + "y" * 4_000_000)
    assert len(out) > 8_000_000


@given(st.text(alphabet=st.characters(), max_size=200))
def test_nothing_but_our_own_tags_whatever_comes(anything: str):
    for shown in (text.terminal(anything), text.block(anything, "a"), text.plain(anything)):
        assert all(ALLOWED.fullmatch(tag) for tag in TAGS.findall(shown))
        rest = unescape(TAGS.sub("", shown))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest)
        shown.encode()


@given(
    st.lists(
        st.sampled_from(
            ["\x1b", "[", "]8;;", "31", "m", ";", "38", "5", "<b>", "\n", "\x07", "\\", "x"]
        ),
        max_size=40,
    )
)
def test_any_sequence_gives_whole_html(parts: list[str]):
    shown = text.terminal("".join(parts))
    assert shown.count("<span") == shown.count("</span>")
    assert all(ALLOWED.fullmatch(tag) for tag in TAGS.findall(shown))
    assert "\x1b" not in shown

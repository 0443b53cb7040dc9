"""The published numbers: that they stand in the paper, and that the file is sound."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from corpora import seven_sets

import depthkit.artifacts as artifacts
from depthkit.errors import DepthkitError
from depthkit.published import (
    Claim,
    CrossCheck,
    cross_checks,
    parse,
    published,
    schemes,
    work_out,
)
from depthkit.published.layout import DASH

ROOT = Path(__file__).parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
needs_text = pytest.mark.skipif(
    not (SEEDS / "depth-paper.txt").is_file(),
    reason="the text of the paper is not there (../shared/seeds/depth-paper.txt)",
)
RAW: dict[str, Any] = yaml.safe_load(
    files("depthkit.published").joinpath("depth.yaml").read_text("utf-8")
)
HEADING = re.compile(r"#{2,6} (?:Appendix )?(Abstract|References|\d(?:\.\d)?|[A-J](?:\.\d)?) ")
AFTER_HOLE = "80 means passed only without a cap"


@cache
def sections() -> dict[str, str]:
    """The text of each section, without that of its subsections."""
    paper = (SEEDS / "depth-paper.txt").read_text()
    marks = [(match.start(), match[1]) for match in HEADING.finditer(paper)]
    marks.append((paper.index(AFTER_HOLE), "4.2"))  # its heading is lost
    marks = [*sorted(marks), (len(paper), "")]
    found = {name: paper[start:end] for (start, name), (end, _) in pairwise(marks)}
    return found | {"README": (SEEDS / "depth-repo-readme.txt").read_text()}


def pattern(claim: Claim) -> str:
    """Matches the number where it is not a piece of another one."""
    if claim.printed is not None:
        return re.escape(claim.printed)
    end = "" if claim.value.endswith("%") else r"(?!\d|[.,]\d)"
    return rf"(?<![\d.,]){re.escape(claim.value)}{end}"


@needs_text
def test_every_number_stands_in_the_section_that_it_is_ascribed_to():
    missing = [
        (claim.id, claim.value)
        for claim in published("depth")
        if not re.search(
            pattern(claim), sections()[claim.section.split(",")[0]], flags=re.IGNORECASE
        )
    ]
    assert not missing


@needs_text
@pytest.mark.parametrize("table", RAW["tables"], ids=lambda table: table["id"])
def test_every_row_of_a_table_stands_in_the_paper_as_it_is_printed(table: dict[str, Any]):
    text = sections()[table["section"].split(",")[0]]
    text = text[text.index(f"{table['section'].split(', ')[1]}:") :]
    # Table 3 has words between its numbers, Tables 8 and 9 have other labels in front
    before = {"table-2": rf"(?:\w+|{DASH})", "table-8": ".*?", "table-9": ".*?"}.get(
        table["id"], ""
    )
    between = r".{0,35}?" if table["id"] == "table-3" else r"[\s/\[\],]*"
    for label, line in table["rows"].items():
        name = re.escape(label) if table["row"] in ("dataset", "model") else ""
        cells = [cell for cell in line.split() if cell != DASH or table["id"] != "table-3"]
        numbers = between.join(re.escape(cell) for cell in cells)
        assert re.search(rf"{name}\s*{before}{between}(?<!\d){numbers}(?!\d)", text), label


LINK = re.compile(r"\[[^\]]*\]\(http[^()\s]*(?: \"[^\"]*\")?\)")
NO_CLAIM = re.compile(
    r"GLM-5\.3|GPT-[56](\.\d)?|Sonnet 5\.5|V4(\.1)?-|V2\.6|V3\.2|Qwen3\.5|Bench 2\.[01]|TB2\.1|"
    r"l2tp 1\.20\.4|2\.4\.[79]|5\.7\.21|"  # names and versions
    r"95% CI|"  # the level of all intervals
    r"1 or 0\.5"  # values that R can take
)


@needs_text
@pytest.mark.parametrize("section", RAW["sections"][:-1])
def test_no_number_of_the_text_was_overlooked(section: str):
    """All percentages, decimals, amounts and numbers of three digits are some claim's value."""
    text = HEADING.sub(" ", LINK.sub(" ", sections()[section]))
    tokens = numbers_in(NO_CLAIM.sub(" ", text))
    telling = {t for t in tokens if len(t.strip("$%")) > 2 or not t.isdigit()}
    claimed = [c for c in published("depth") if c.section.split(",")[0] == section]
    assert telling <= numbers_in(" ".join(f"{c.value} {c.printed or ''}" for c in claimed))


def numbers_in(text: str) -> set[str]:
    """Numbers as printed, without their plus or minus."""
    found = re.findall(r"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?%?", text)
    return {token.rstrip(",") for token in found}


@needs_text
def test_a_changed_digit_would_be_noticed():
    """The two tests above can fail: a number that is not printed is not found."""
    made_up = Claim.model_validate(
        {"id": "x", "section": "4.3", "claim": "c", "value": "-0.32", "kind": "setting"}
        | {"setting": "CAPS"}
    )
    assert not re.search(pattern(made_up), sections()["4.3"])
    cut_short = made_up.model_copy(update={"value": "0.3"})  # stands only in 0.31 and -0.31
    assert not re.search(pattern(cut_short), sections()["4.3"])


def test_the_paper_gives_this_many_numbers_by_section():
    once = [claim for claim in published("depth") if claim.repeats is None]
    computed = Counter(c.section.split(",")[0] for c in once if c.kind == "computed")
    assert computed == {
        "1": 1,
        "4.2": 85,
        "4.3": 32,
        "4.4": 19,
        "4.5": 51,
        "4.6": 7,
        "C": 27,
        "D": 35,
        "E.1": 25,
        "E.2": 6,
        "F": 17,
        "G": 47,
        "H": 7,
        "I": 15,
    }
    assert Counter(claim.kind for claim in once) == {
        "computed": 374,
        "not_computable": 77,
        "setting": 13,
    }
    assert len(published("depth")) == 563


def test_claims_come_in_the_order_of_the_paper():
    order = [claim.section.split(",")[0] for claim in published("depth")]
    assert order == sorted(order, key=RAW["sections"].index)


def test_a_repeated_number_is_about_the_same_cell():
    by_id = {claim.id: claim for claim in published("depth")}
    repeats = [claim for claim in by_id.values() if claim.repeats]
    assert len(repeats) > 50
    for claim in repeats:
        first = by_id[claim.repeats or ""]
        assert (claim.kind, claim.cell, claim.setting) == (first.kind, first.cell, first.setting)
        # the same number, perhaps with fewer digits
        if len(claim.numbers) == 1:
            low, high = sorted((claim, first), key=lambda each: each.half_unit)
            assert abs(low.number - high.number) <= high.half_unit, claim.id


def test_models_are_named_as_in_the_registry():
    known = set(yaml_models())
    for claim in published("depth"):
        if claim.cell is not None and claim.artifact in ("depth/table-2", "depth/figure-14"):
            assert claim.cell.where.get("model", "glm-5.3-flash") in known, claim.id


def yaml_models() -> list[str]:
    from depthkit.trials.models import load_models

    return list(load_models())


# --- the scheme of artifacts ---


def test_artifacts_that_are_built_hold_what_the_scheme_promises(tmp_path: Path):
    corpus = seven_sets(tmp_path / "seven")
    built = {name for name in artifacts.ids() if name.startswith("depth/")}
    built -= {"depth/table-3", "depth/table-7"}  # of the code: no number is of a corpus
    assert "depth/table-1" in built
    assert built <= set(schemes("depth"))
    for name in sorted(built):
        made, scheme = artifacts.build(name, corpus), schemes("depth")[name]
        for part, frame in {None: scheme, **scheme.parts}.items():
            found = made.frame if part is None else made.parts[part]
            assert {*frame.rows, *frame.columns} <= set(found), (name, part)


def test_every_artifact_of_the_scheme_has_a_number():
    used = {claim.artifact for claim in published("depth") if claim.kind == "computed"}
    assert used == set(schemes("depth"))


HEAD = """
title: t
source: s
sections: ["1", "2"]
models: {Big Model: big}
artifacts:
  a: {rows: {model: m}, columns: {n: c}, parts: {p: {columns: {q: c}}}}
"""
BLOCK = "blocks: [{id: b, section: '1', artifact: a, datasets: [A], claims: [%s]}]"


def test_a_block_is_a_claim_for_each_of_its_numbers():
    text = BLOCK % (
        "{id: x, claim: c, value: '5', column: n, where: {model: Big Model}}, "
        "{id: y, claim: c, value: '7%', column: q, part: p, section: '2, text'}, "
        "{id: z, claim: c, value: '7.2%', repeats: b/y}"
    )
    x, z, y = parse(HEAD + text, "x.yaml")
    assert (x.id, x.datasets, x.cell and x.cell.where) == ("b/x", ("A",), {"model": "big"})
    assert (y.section, y.cell and y.cell.part, y.percent) == ("2, text", "p", True)
    assert (z.artifact, z.cell, z.repeats, z.value) == ("a", y.cell, "b/y", "7.2%")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{id: x, claim: c, value: '5', column: m}", "scheme of a lacks column m"),
        ("{id: x, claim: c, value: '5', column: n}", "a single row .where lacks model"),
        ("{id: x, claim: c, value: '5', column: n, part: r}", "lacks part r"),
        ("{id: x, claim: c, value: '5', column: n, where: {k: 1}}", "lacks key k"),
        ("{id: x, claim: c, value: '5', column: n, artifact: b}", "lacks this artifact"),
        ("{id: x, claim: c, value: '5', column: q, part: p, section: '3'}", "section 3 is not"),
        ("{id: x, claim: c, value: '5', repeats: b/y}", "b/x repeats b/y, which is no claim"),
        ("{id: x, claim: c, value: five, column: q, part: p}", "b/x: .*'five' is not a number"),
    ],
)
def test_a_number_without_its_place_is_named(claim: str, message: str):
    with pytest.raises(DepthkitError, match=message):
        parse(HEAD + BLOCK % claim, "x.yaml")


def test_the_documented_example_is_read():
    text = (ROOT / "docs" / "published.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    found = parse(example, "docs/published.md")
    assert [claim.kind for claim in found] == ["computed"] * 4 + ["not_computable"]


# --- printed numbers among each other ---


def test_cross_checks_come_out_as_recorded():
    found = cross_checks("depth")
    assert len(found) > 120
    wrong = [each.check.id for each in found if each.holds != each.check.holds]
    assert not wrong
    assert [each.check.id for each in found if not each.holds] == [
        "hardest-passed",
        "gemini-evidence",
        "harder-labels",
        "balanced-SETA",
        "reference-solutions",
        "rating-with-D",
        "unchanged-depths",
    ]
    ids = [each.check.id for each in found]
    assert len(set(ids)) == len(ids)


def number(name: str, value: str, **fields: Any) -> Claim:
    return Claim.model_validate(
        {"id": name, "section": "1", "claim": "c", "value": value, "kind": "setting"}
        | {"setting": "CAPS"}
        | fields
    )


NUMBERS = {
    claim.id: claim
    for claim in (
        number("two", "2"),
        number("five", "5"),
        number("third", "33%"),
        number("rate", "0.88"),
        number("all", "47", unit="percent"),
        number("mean", "44.7"),
        number("about", "45"),
    )
}


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({"left": {"sum": ["two", "five"]}, "right": 7}, True),
        ({"left": {"sum": ["two", "five"]}, "right": 8}, False),
        ({"left": {"difference": ["five", "two"]}, "right": 3}, True),
        ({"left": {"ratio": ["two", "five"]}, "right": "0.4"}, True),
        ({"left": {"ratio": [1, 3]}, "right": "third"}, True),
        ({"left": {"ratio": [2, 6]}, "right": {"product": ["third", 2]}}, False),
        ({"left": {"power": ["rate", 6]}, "right": "all"}, True),
        ({"left": {"power": ["rate", 5]}, "right": "all"}, False),
        ({"left": "mean", "right": "about"}, False),  # 45 as a count
        ({"left": "mean", "right": {"rounded": ["about"]}}, True),
        ({"left": "five", "relation": "at_most", "right": "two"}, False),
        ({"left": "five", "relation": "at_least", "right": "two"}, True),
        ({"share": "third", "of": 6}, True),
        ({"share": "third", "of": 5}, False),
    ],
)
def test_a_relation_holds_when_rounding_leaves_room_for_it(fields: dict[str, Any], holds: bool):
    check = CrossCheck.model_validate({"id": "x", "about": "a", **fields})
    assert work_out(check, NUMBERS).holds is holds


def test_a_share_gives_the_counts_that_round_to_it():
    check = CrossCheck(id="x", about="a", share="third", of=300)
    assert list(work_out(check, NUMBERS).counts or ()) == [98, 99, 100]


def test_a_cross_check_of_an_unknown_number_is_an_error():
    check = CrossCheck(id="x", about="a", left="no-such", right=1)
    with pytest.raises(ValueError, match="'no-such' is neither a claim's id nor a number"):
        work_out(check, NUMBERS)
    with pytest.raises(ValueError, match="needs left and right, or share and of"):
        CrossCheck(id="x", about="a", left=1)

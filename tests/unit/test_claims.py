from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from corpora import Spec, seven_sets, write_corpus
from typer.testing import CliRunner

from depthkit.artifacts import build, ids
from depthkit.artifacts.artifact import parameters
from depthkit.artifacts.claims import agrees, claims, compare
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.published import Claim, parse, published
from depthkit.stats import ArgumentError, rank_partial_correlation, spearman


def claim(value: str, rule: str = "rounded", **fields: Any) -> Claim:
    return Claim.model_validate(
        {
            "id": "x",
            "section": "1",
            "claim": "a number",
            "value": value,
            "rule": rule,
            "datasets": ["TMax"],
            "artifact": "depth/table-1",
            "cell": {"column": "N", "where": {"dataset": "TMax"}},
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("printed", "computed", "expected"),
    [
        ("5.8", "5.75", True),  # a tie may have been rounded either way
        ("5.8", "5.85", True),
        ("5.8", "5.8501", False),
        ("5.8", "5.74999", False),
        ("94%", "93.5", True),
        ("94%", "94.51", False),
        ("226", "226.5", True),
        ("11.86", "11.865", True),
        ("1,530", "1530", True),
        ("-0.31", "-0.305", True),
        ("-0.31", "0.31", False),
        ("5.8", "5.850000000000001", True),  # floating point, not a difference
    ],
)
def test_a_number_agrees_within_half_a_unit_of_its_last_printed_digit(
    printed: str, computed: str, expected: bool
):
    assert agrees(claim(printed), Decimal(computed)) is expected


@pytest.mark.parametrize(
    ("rule", "computed", "expected"),
    [
        ("at_least", "40", True),
        ("at_least", "39.9", False),
        ("at_most", "40", True),
        ("at_most", "40.1", False),
        ("above", "40", False),
        ("below", "40", False),
        ("below", "39", True),
    ],
)
def test_a_bound_agrees_when_its_inequality_holds(rule: str, computed: str, expected: bool):
    assert agrees(claim("40", rule), Decimal(computed)) is expected


def test_an_interval_end_may_be_off_by_three_hundredths():
    assert agrees(claim("-0.53", "interval"), Decimal("-0.56"))
    assert not agrees(claim("-0.53", "interval"), Decimal("-0.561"))


def test_every_published_number_has_its_cell_in_a_corpus_that_holds_the_data_sets(tmp_path: Path):
    found = claims(seven_sets(tmp_path / "seven"))
    assert len(found.results) == len(published("depth")) > 90
    for result in found.results:
        assert (result.computed is None) == (result.kind == "not_computable")
        assert result.built == (result.claim.kind != "computed" or result.claim.artifact in ids())
        if result.built and result.claim.artifact in ("depth/table-1", "depth/section-4.2"):
            assert result.kind == result.claim.kind, result


def test_numbers_are_computed_from_the_corpus_and_compared(tmp_path: Path):
    deep = [Spec("TB2", 5, turns=8, work=44, group="human-curated")] * 4
    shallow = [Spec("TB2", 1, turns=8, work=44, group="human-curated")] * 33
    unsolved = [Spec("TB2", 0, group="human-curated")] * 2
    corpus = write_corpus(tmp_path / "c", [*deep, *shallow, *unsolved])
    rows = {result.claim.id: result.row() for result in claims(corpus).results}
    assert rows["table-1/TB2/sampled"]["computed"] == 39
    assert rows["table-1/TB2/D_ge_5"]["published"] == 11
    assert rows["table-1/TB2/D_ge_5"]["computed"] == pytest.approx(400 / 37)
    agreeing = ("sampled", "solved", "D_le_3", "D_ge_5", "D", "N", "W")
    assert all(rows[f"table-1/TB2/{name}"]["agrees"] for name in agreeing)
    assert rows["table-1/TB2/minutes"]["agrees"] is False
    assert rows["table-1/TW/sampled"]["kind"] == "not_computable"
    # about TB2 and TW together, so not to be had from TB2 alone
    assert rows["section-4.2/curated-solved"]["computed"] is None


def test_what_rests_on_runs_is_not_computable_without_them(tmp_path: Path):
    """A corpus of tasks alone, or with runs of other purposes, has no counts of 0 to compare."""
    every = Corpus.open("paper")
    unmeasured = Corpus.open_or_create(tmp_path / "c", models=every.models)
    unmeasured.append_tasks(every.task_records())
    evaluated = [run for run in every.run_records() if run.purpose == "evaluation"]
    unmeasured.append_runs(evaluated)
    found = {result.claim.id: result for result in claims(unmeasured).results}
    zero = (Decimal(0),)
    assert not [r.claim.id for r in found.values() if r.computed == zero and not r.agrees]
    assert found["table-9/lines/task_median"].agrees  # a task says this itself
    assert found["table-2/GPT-6 Luna/pass_at_1"].agrees
    said = "no task of TMax has two valid runs without a cap in corpus c"
    assert found["table-1/TMax/solved"].reason == said


def test_counts_of_depth_are_not_computable_before_a_ladder_is_done(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("TW", 5, runs=2, group="human-curated")] * 3)
    found = {result.claim.id: result for result in claims(corpus).results}
    assert found["table-1/TW/solved"].computed == (Decimal(3),)
    assert found["table-1/TW/D_ge_5"].kind == "not_computable"
    twice = [Spec(name, 5, runs=2, group="human-curated") for name in ("TW", "TB2")]
    found = {r.claim.id: r for r in claims(write_corpus(tmp_path / "d", twice)).results}
    assert found["section-4.2/curated-solved"].computed == (Decimal(2),)
    assert found["section-4.2/curated-deep"].kind == "not_computable"
    said = "no task of TB2, TW is solved and has a final D in corpus small"
    assert found["figure-4/curated-tasks"].reason == said


def test_an_artifact_that_is_not_built_yet_is_no_error_and_is_counted_apart(tmp_path: Path):
    waiting = claim("5", artifact="depth/table-99")
    missing = claim("5", id="y", cell={"column": "N", "where": {"dataset": "TW"}}, datasets=["TW"])
    found = compare([waiting, missing], write_corpus(tmp_path / "c", [Spec("TMax", 1)]))
    assert [result.kind for result in found.results] == ["not_computable"] * 2
    assert [result.row()["built"] for result in found.results] == [False, True]
    assert found.results[0].reason == "artifact depth/table-99 is not built yet"
    assert found.score.split(" · ") == [
        "scripted, no model's results",
        "1 not computable in corpus small",
        "1 of artifacts not built yet",
    ]
    assert "1 numbers of artifacts that are not built yet" in found.show()._repr_html_()


def test_the_ends_of_a_range_are_the_least_and_the_greatest_row(tmp_path: Path):
    specs = [Spec("TMax", 1, turns=5), Spec("TW", 1, turns=9), Spec("RST", 1, turns=7)]
    corpus = write_corpus(tmp_path / "c", specs)
    sets = {"datasets": ["TMax", "TW", "RST"]}
    ends = [claim("5", cell={"column": "N", "of": of}, **sets) for of in ("min", "max")]
    found = compare(ends, corpus)
    assert [result.computed for result in found.results] == [(Decimal(5),), (Decimal(9),)]
    unsolved = write_corpus(tmp_path / "d", [*specs[:2], Spec("RST", 0)])
    assert [result.kind for result in compare(ends, unsolved).results] == ["not_computable"] * 2


def test_a_number_that_repeats_another_is_compared_and_not_counted(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("TMax", 1, turns=5)])
    found = compare([claim("5"), claim("6", id="y", repeats="x")], corpus)
    assert [result.agrees for result in found.results] == [True, False]
    assert found.score.split(" · ") == [
        "scripted, no model's results",
        "1 of 1 computed numbers agree",
        "1 repeat others, not counted",
    ]


def test_a_percentage_whose_sign_stands_in_the_head_is_compared_as_one(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("TMax", 1), Spec("TMax", 5)])
    cell = {"column": "D_ge_5", "where": {"dataset": "TMax"}}
    (result,) = compare([claim("50", unit="percent", cell=cell)], corpus).results
    assert (result.agrees, result.computed_text) == (True, "50")


def test_a_tiny_number_is_compared_in_its_own_last_digit():
    printed = claim("5.8e-11")
    assert agrees(printed, Decimal(repr(2 * 0.5**35)))
    assert not agrees(printed, Decimal("2.9e-11"))
    assert not agrees(printed, Decimal("0"))


def test_other_data_sets_do_not_enter_a_number(tmp_path: Path):
    rst = [Spec("rst", 2, work=119), Spec("rst", 2, work=119)]
    alone = claims(write_corpus(tmp_path / "a", rst))
    with_others = claims(write_corpus(tmp_path / "b", [*rst, Spec("mine", 80, work=7)]))
    assert [r.computed for r in alone.results] == [r.computed for r in with_others.results]
    assert any(r.claim.id == "section-4.2/RST-work" and r.agrees for r in alone.results)


def test_a_corpus_without_the_papers_data_sets_disagrees_with_nothing(tmp_path: Path):
    found = claims(write_corpus(tmp_path / "c", [Spec("parallel", 2), Spec("control", 10)]))
    kinds = {result.kind for result in found.results}
    assert kinds == {"not_computable", "setting"}
    assert all(r.agrees is None for r in found.results if r.kind == "not_computable")
    assert all(r.agrees for r in found.results if r.kind == "setting")
    assert "computed" not in found.score


def test_a_lower_bound_never_agrees(tmp_path: Path):
    specs = [Spec("Ours", 99, turns=120, group="ours"), Spec("Ours", 1, group="ours")]
    corpus = write_corpus(tmp_path / "c", specs)
    depth = next(r for r in claims(corpus).results if r.claim.id == "table-1/Ours/D")
    assert depth.computed == (Decimal("40.5"),)  # within half a unit of 40, but only a bound
    assert depth.agrees is False


def test_approximate_numbers_are_shown_and_not_counted(tmp_path: Path):
    found = claims(write_corpus(tmp_path / "c", [Spec("SETA", 1)] * 9 + [Spec("SETA", 2)]))
    about = next(r for r in found.results if r.claim.id == "section-4.2/SETA-single-turn")
    assert about.agrees and not about.counted
    assert "1 approximate, not counted" in found.score
    computed = [r for r in found.results if r.kind == "computed" and r is not about]
    counted = [r for r in computed if r.claim.repeats is None]
    assert len(counted) < len(computed)
    assert f"of {len(counted)} computed numbers agree" in found.score


def test_claims_of_one_section_leave_out_the_others(tmp_path: Path):
    found = claims(write_corpus(tmp_path / "c", [Spec("a", 1)]), "4.2")
    assert {result.claim.section.split(",")[0] for result in found.results} == {"4.2"}
    with pytest.raises(DepthkitError, match=r"section is '9\.9'"):
        claims(write_corpus(tmp_path / "d", [Spec("a", 1)]), "9.9")


def test_several_sections_are_shown_together_in_the_papers_order(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("a", 1)])
    both = [each.claim.id for each in claims(corpus, "G", "4.4").results]
    alone = [[e.claim.id for e in claims(corpus, name).results] for name in ("4.4", "G")]
    assert sorted(both) == sorted(alone[0] + alone[1])
    assert [each for each in both if each in alone[0]] == alone[0]
    with pytest.raises(DepthkitError, match=r"section is '4\.9'.*4\.4"):
        claims(corpus, "4.4", "4.9")


def test_the_command_prints_one_object_a_claim(tmp_path: Path):
    corpus = seven_sets(tmp_path / "seven")
    printed = CliRunner().invoke(app, ["claims", "--corpus", str(corpus.path), "--json"])
    rows = json.loads(printed.stdout)
    assert len(rows) == len(published("depth"))
    for name in ("artifact", "claim", "kind", "published", "computed", "agrees"):
        assert all(name in row for row in rows)
    caps = next(row for row in rows if row["id"] == "protocol/caps")
    assert caps["published"] == caps["computed"] == [1, 2, 3, 5, 10, 20, 40, 80]
    people = CliRunner().invoke(app, ["claims", "--corpus", str(corpus.path)])
    assert claims(corpus).score.split(" · ")[0] in people.stdout
    assert "scripted · " in people.stdout


def test_the_command_gives_reasons_sections_and_what_disagrees(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("TMax", 1)] * 3)

    def printed(*options: str) -> str:
        command = ["claims", "--corpus", str(corpus.path), *options]
        return " ".join(CliRunner().invoke(app, command, env={"COLUMNS": "200"}).stdout.split())

    reason = "not computable: corpus small does not hold FACET"
    assert reason in printed()
    rows = json.loads(printed("--section", "4.2", "--section", "G", "--json"))
    assert {row["section"].split(",")[0] for row in rows} == {"4.2", "G"}
    facet = next(row for row in rows if row["id"] == "table-1/FACET/solved")
    assert (facet["kind"], facet["reason"]) == ("not_computable", reason.split(": ")[1])
    rows = json.loads(printed("--disagreeing", "--json"))
    assert rows and all(row["agrees"] is False for row in rows)
    said = printed("--disagreeing", "--section", "4.2")
    assert "TMax: tasks solved 94 3 no" in said and reason not in said
    assert claims(corpus, "4.2").score in said  # over all of the section


HEAD = "title: t\nsource: s\n"
ONE = "{id: a, section: '1', claim: c, value: '%s', kind: %s, %s}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claims: [" + ONE % ("5.8", "computed", "datasets: [A]") + "]", "needs artifact, cell"),
        ("claims: [" + ONE % ("5.8", "setting", "") + "]", "kind setting needs setting"),
        ("claims: [" + ONE % ("many", "setting", "setting: CAPS") + "]", "'many' is not a number"),
        ("claims: [" + ONE % ("5", "settings", "setting: CAPS") + "]", "claims.0.kind"),
        ("claims: [" + ONE % ("5", "setting", "setting: CAPS, extra: 1") + "]", "claims.0.extra"),
        ("claims: [" + ", ".join([ONE % ("5", "setting", "setting: CAPS")] * 2) + "]", "id a is"),
        ("claims: [", "published/x.yaml"),
        (
            "tables: [{id: t, section: '1', artifact: a, row: d, "
            "columns: [{name: n, claim: c}], rows: {TMax: '1 2'}}]",
            "row TMax has 2 cells for 1 columns",
        ),
    ],
)
def test_a_mistake_in_the_published_numbers_is_named(text: str, message: str):
    with pytest.raises(DepthkitError, match=message) as error:
        parse(HEAD + text, "published/x.yaml")
    assert str(error.value).startswith("published/x.yaml")


def test_claims_take_the_parameters_of_the_page_they_stand_on():
    caps = [1, 20, 80]
    table = build("depth/table-1", "paper", caps=caps).frame.set_index("dataset")
    found = {r.claim.id: r for r in claims("paper", "4.2", caps=caps, seed=3).results}
    printed = {r.claim.id: r for r in claims("paper", "4.2").results}
    for name in ("FACET", "RST", "Ours"):
        depth = found[f"table-1/{name}/D"]
        assert depth.computed == (Decimal(repr(float(table.loc[name, "D"]))),)
    assert found["table-1/FACET/D"].computed != printed["table-1/FACET/D"].computed
    assert found["table-1/FACET/W"].computed == printed["table-1/FACET/W"].computed


def test_numbers_of_data_sets_that_a_page_leaves_out_are_withheld_and_say_why():
    found = {r.claim.id: r for r in claims("paper", "4.2", datasets=["tb2"]).results}
    assert found["table-1/TB2/N"].agrees
    left_out = found["table-1/TW/N"]
    assert left_out.kind == "not_computable"
    assert left_out.reason == "the parameter datasets leaves out TW"


def test_a_parameter_that_no_artifact_takes_is_an_error():
    with pytest.raises(DepthkitError, match="no artifact takes the parameter resample; they take"):
        claims("demo", "4.2", resample=10)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"resamples": -1}, "resamples is -1; it must be at least 0"),
        ({"resamples": float("nan")}, "resamples is nan; it must be a whole number"),
        ({"seed": "lucky"}, "seed is 'lucky'; it must be a whole number"),
    ],
)
def test_what_a_caller_got_wrong_is_an_error_and_not_a_missing_correlation(
    given: dict[str, Any], says: str, tmp_path: Path
):
    bare = write_corpus(tmp_path / "c", [Spec("TMax", 1)])  # in which nothing is correlated
    taking = [each for each in ids() if set(given) <= parameters(each)]
    assert len(taking) >= 3
    for artifact_id in taking:
        for corpus in ("paper", bare):
            with pytest.raises(DepthkitError, match=says):
                build(artifact_id, corpus, **given)
    with pytest.raises(DepthkitError, match=says):
        claims("paper", **given)
    x, y = [1, 2, 3, 4], [2, 1, 4, 3]
    with pytest.raises(ArgumentError, match=says):
        spearman(x, y, **given)
    with pytest.raises(ArgumentError, match=says):
        rank_partial_correlation(x, [1, 1, 1, 1], [y], **given)  # not hidden by the sample


def test_claims_and_their_score_say_what_they_rest_on():
    found = claims("paper", "4.2")
    assert found.score.startswith("fitted, not data · ")
    done = CliRunner().invoke(app, ["claims", "--json"])
    assert {row["provenance"] for row in json.loads(done.stdout)} == {
        "scripted, no model's results"
    }

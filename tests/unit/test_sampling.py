"""Sampling a data set: which tasks, in which order, and why not the others (Appendix C)."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from depthkit.artifacts import sampling as tables
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.sample import add_to_corpus, draw_sample, read_table, write_sample
from depthkit.experiments.sampling import (
    RULES,
    Rules,
    evidence_of,
    extension,
    interleaved,
    plan_sample,
    read_rules,
)
from depthkit.tasks import load_task
from depthkit.tasks.light import heavy_signs

MULTISTEP = {
    "dataset": "multistep",
    "id": ["repo", "task"],
    "n": 100,
    "evidence": [],
    "keep": [{"needs": {"allow_internet": ["False", ""]}, "reason": "uses external services"}],
    "groups": [
        {
            "name": "few steps",
            "where": {"steps": {"at_most": 3}},
            "split": "solution_lines",
            "into": 3,
        },
        {"name": "more steps", "where": {"steps": {"at_least": 4}}},
    ],
    "label": "difficulty",
    "label_source": "author",
}


def rules(**changes: Any) -> Rules:
    plain = {"dataset": "d", "id": ["task"], "n": 4, "evidence": [], "groups": [{"name": "all"}]}
    return Rules.model_validate(plain | changes)


def rows(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Tasks t0, t1, …; a column is a function of the number."""
    return [
        {"task": f"t{n}"} | {name: value(n) for name, value in columns.items()}
        for n in range(count)
    ]


# --- the order ---


@given(st.dictionaries(st.text(max_size=3), st.lists(st.integers(), unique=True), max_size=6))
def test_every_prefix_is_balanced_until_a_group_is_exhausted(groups: dict[str, list[int]]) -> None:
    drawn = {name: [f"{name}/{n}" for n in members] for name, members in groups.items()}
    order = interleaved(drawn)
    assert sorted(order) == sorted((g, n) for g, names in drawn.items() for n in names)
    counts = Counter(dict.fromkeys(groups, 0))
    for group, _ in order:
        counts[group] += 1
        going_on = [n for name, n in counts.items() if n < len(groups[name])]
        # Two groups that are not exhausted differ by one at most; an exhausted one is never ahead.
        least = min(going_on, default=counts[group])
        assert max(counts.values()) - least <= 1


@given(st.integers(1, 60), st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_list_does_not_depend_on_the_order_of_the_table(
    count: int, shuffler: random.Random, into: int
) -> None:
    table = rows(count, size=lambda n: n % 7)
    split = {"split": "size", "into": into} if into > 1 else {}
    asked = rules(groups=[{"name": "g", **split}])
    before = plan_sample(table, asked)
    shuffled = list(table)
    shuffler.shuffle(shuffled)
    after = plan_sample(shuffled, asked)
    assert [each.task_id for each in before.listed] == [each.task_id for each in after.listed]


def test_another_seed_draws_otherwise_but_from_the_same_groups() -> None:
    table = rows(40, size=lambda n: n)
    asked = {"groups": [{"name": "g", "split": "size", "into": 2}]}
    one, two = (plan_sample(table, rules(seed=seed, **asked)) for seed in (1, 2))
    assert [c.task_id for c in one.listed] != [c.task_id for c in two.listed]
    assert one.groups == two.groups == {"g 1/2": 20, "g 2/2": 20}


def test_parts_are_about_equal_and_equal_numbers_stay_together() -> None:
    table = rows(12, size=lambda n: str([1, 1, 1, 1, 1, 2, 3, 3, 4, 5, 6, ""][n]))
    plan = plan_sample(table, rules(groups=[{"name": "g", "split": "size", "into": 3}]))
    parts: dict[str, set[str]] = {}
    for each in plan.listed:
        parts.setdefault(str(each.group), set()).add(each.task_id)
    assert parts == {
        "g 1/3": {"t0", "t1", "t2", "t3", "t4"},
        "g 2/3": {"t5", "t6", "t7"},
        "g 3/3": {"t8", "t9", "t10"},
    }
    assert [(c.task_id, c.reason) for c in plan.left_out] == [("t11", "in no group of the rules")]


def test_only_tasks_that_some_model_passed_are_drawn() -> None:
    table = rows(4, kind=lambda n: "ab"[n % 2], passes=lambda n: ["0", "0", "2", ""][n])
    evidence = [{"text": "2 of 8", "where": {"kind": "a"}, "needs": {"passes": {"at_least": 2}}}]
    plan = plan_sample(table, rules(evidence=evidence))
    assert {each.task_id for each in plan.listed} == {"t1", "t2", "t3"}  # of b none is released
    (out,) = plan.left_out
    assert out.reason == "no model is known to pass it (needed: 2 of 8)"


@pytest.mark.parametrize(
    ("solved", "measured", "target", "left", "more"),
    [
        (50, 100, 50, 99, 0),
        (25, 100, 50, 500, 100),
        (27, 106, 50, 500, 91),
        (0, 10, 50, 500, 5),
        (25, 100, 50, 30, 30),
        (0, 0, 50, 9, 1),
        (3, 10, 5, 0, 0),
    ],
)
def test_a_list_is_extended_at_the_share_solved_so_far(
    solved: int, measured: int, target: int, left: int, more: int
) -> None:
    assert extension(solved, measured, target, left) == more


# --- rules ---


@pytest.mark.parametrize("name", ["tmax", "facet", "seta", "rst", "tb2", "tw"])
def test_the_papers_rules_are_data(name: str) -> None:
    read = read_rules(name)
    assert read == read_rules(RULES / f"{name}.yaml")
    assert read.made == ("human-curated" if name in ("tb2", "tw") else "synthetic")
    assert (read.n == "all") == (name in ("tb2", "tw"))
    assert bool(read.evidence) == (name != "facet")


def test_tmax_has_the_groups_of_table_4() -> None:
    table = rows(
        80,
        level=lambda n: n % 4 + 1,
        gemini_passes=lambda n: 2 + n % 3,
        gemini_turns=lambda n: n,
    )
    plan = plan_sample(table, read_rules("tmax"))
    levels = [f"level {level} {part}/3" for level in (1, 2, 3) for part in (1, 2, 3)]
    assert list(plan.groups) == [*levels, "level 4"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dataset: [", "is not valid YAML"),
        (b"dataset: caf\xe9", r"r\.yaml: line 1 is not UTF-8"),
        ("[" * 3000, r"r\.yaml: is nested too deeply; make it flatter"),
        ("n: !!bool x", "is not valid YAML"),
        ("n: !!timestamp x", "is not valid YAML"),
        (f"n: {'9' * 5000}", "is not valid YAML"),
        ("dataset: d", "id: Field required"),
        (yaml.safe_dump(MULTISTEP | {"seeds": 3}), "seeds: Extra inputs"),
        (yaml.safe_dump(MULTISTEP | {"groups": [{"name": "a", "split": "x"}]}), "give both"),
    ],
)
def test_a_wrong_rule_file_is_told(tmp_path: Path, text: str | bytes, said: str) -> None:
    (tmp_path / "r.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DepthkitError, match=said):
        read_rules(tmp_path / "r.yaml")


def test_a_table_that_does_not_fit_is_told() -> None:
    with pytest.raises(DepthkitError, match="the table lacks size"):
        plan_sample(rows(2), rules(groups=[{"name": "g", "split": "size", "into": 2}]))
    with pytest.raises(DepthkitError, match="t0 is in the table twice"):
        plan_sample([*rows(2), *rows(1)], rules())
    with pytest.raises(DepthkitError, match="no such file"):
        read_rules("nothing")


# --- samples ---


def test_a_sample_is_the_same_to_the_byte_whatever_the_order_of_the_table(tmp_path: Path) -> None:
    draw = random.Random(0)
    described = rows(
        351,
        repo=lambda n: f"owner/{n % 5}",
        steps=lambda _: 1 + int(9 * draw.random() ** 2),
        solution_lines=lambda _: int(400 * draw.random() ** 4),
        difficulty=lambda _: ("easy", "medium", "hard", "")[int(4 * draw.random())],
        allow_internet=lambda n: "True" if n % 12 == 0 else "False",
    )
    public = tmp_path / "multistep_tasks.csv"
    with public.open("w") as file:
        writer = csv.DictWriter(file, list(described[0]))
        writer.writeheader()
        writer.writerows(described)
    table, asked = read_table(public), Rules.model_validate(MULTISTEP)
    found = draw_sample(table, asked)
    assert len(found.sampled) == 100
    assert len(found.decisions) == 351
    assert all(each.reason for each in found.decisions)
    texts = []
    for rows_ in (table, table[::-1]):
        files = write_sample(draw_sample(rows_, asked), tmp_path / str(len(texts)))
        texts.append([path.read_bytes() for path in files])
    assert texts[0] == texts[1]
    assert hashlib.sha256(texts[0][0]).hexdigest() == (
        "60d7c5d77d017d25c05ebe688f74d6cf6f4281a09500d8d4159e4e4efd84c8e8"
    )
    seen: Counter[str] = Counter()
    for each in found.sampled:
        seen[str(each.group)] += 1
        assert max(seen.values()) - min(seen[group] for group in found.plan.groups) <= 1


def write_task(folder: Path, dockerfile: str = "FROM depthkit/base:1\n", **files: str) -> Path:
    texts = {
        "task.toml": "[environment]\n",
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": dockerfile,
        "tests/test.sh": "true\n",
        "solution/solve.sh": "true\n",
    }
    for name, text in (texts | {n.replace("__", "/"): t for n, t in files.items()}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_task_that_is_not_fit_is_replaced_by_the_next_of_the_list(tmp_path: Path) -> None:
    table, asked = rows(6), rules(n=3)
    order = [each.task_id for each in plan_sample(table, asked).listed]
    for name in order[1:]:
        write_task(tmp_path / name)
    write_task(tmp_path / order[2], "FROM nvidia/cuda:12\n")
    found = draw_sample(table, asked, tasks_dir=tmp_path)
    assert [each.task_id for each in found.sampled] == [order[1], order[3], order[4]]
    reasons = {each.task_id: each.reason for each in found.decisions if each.decided == "replaced"}
    assert list(reasons) == [order[0], order[2]]
    assert reasons[order[0]].startswith("no directory of it")
    assert reasons[order[2]].startswith("heavy dependency: gpu: environment/Dockerfile:1:")
    assert found.decisions[-1].decided == "reserve"


HEAVY: list[tuple[str | None, bool, str, dict[str, str]]] = [
    # (kind, sure, Dockerfile, other files)
    (None, True, "FROM debian\nRUN apt-get update && apt-get install -y nginx\n", {}),
    (
        None,
        True,
        "FROM debian\n",
        {"tests/test.sh": "pip install pytest\ncurl http://localhost/\n"},
    ),
    ("gpu", True, "FROM debian\n", {"task.toml": "[environment]\ngpus = 1\n"}),
    ("gpu", False, "FROM debian\n", {"instruction.md": "Use the GPU.\n"}),
    ("privileged", True, "FROM debian\n", {"solution/solve.sh": "docker run --privileged x\n"}),
    ("systemd", True, "FROM debian\n", {"solution/solve.sh": "systemctl restart nginx\n"}),
    (None, True, "FROM debian\n", {"solution/solve.sh": "# systemctl restart nginx\n"}),
    ("systemd", True, 'FROM debian\nCMD ["/sbin/init"]\n', {}),
    (
        "external service",
        True,
        "FROM debian\n",
        {"solution/solve.sh": "curl https://x.org/a.csv\n"},
    ),
    (None, True, "FROM debian\n", {"solution/solve.sh": "curl -s http://127.0.0.1:80/\n"}),
    ("external service", True, "FROM debian\nENV OPENAI_API_KEY=\n", {}),
    ("external service", True, "FROM debian\n", {"solution/solve.sh": "pip install x\n"}),
    (
        "external service",
        True,
        "FROM debian\n",
        {"solution/fetch.py": "import requests\nrequests.get('https://x.org/a.csv')\n"},
    ),
    (None, True, "FROM debian\n", {"solution/fetch.py": "urlopen('http://localhost:80/a')\n"}),
    ("external service", True, "FROM debian\n", {"solution/solve.sh": "cd app && npm ci\n"}),
    ("privileged", True, "FROM debian\n", {"solution/solve.sh": "ip netns add blue\n"}),
    ("download", False, "FROM debian\nRUN curl -O https://x.org/a.tgz\n", {}),
    ("download", False, "FROM debian\nADD https://x.org/a.tgz /srv/\n", {}),
    ("download", False, "FROM pytorch/pytorch\n", {}),
    ("download", False, "FROM python\nRUN pip install torch\n", {}),
    ("build", False, "FROM gcc\nRUN cd src && make -j4\n", {}),
]


@pytest.mark.parametrize(("kind", "sure", "dockerfile", "files"), HEAVY)
def test_heavy_dependencies_are_read_off_the_files(
    tmp_path: Path, kind: str | None, sure: bool, dockerfile: str, files: dict[str, str]
) -> None:
    signs = heavy_signs(load_task(write_task(tmp_path / "set" / "t", dockerfile, **files)))
    assert [(each.kind, each.sure) for each in signs[:1]] == ([(kind, sure)] if kind else [])


def test_tables_4_and_5_come_out_of_a_sample(tmp_path: Path) -> None:
    table = rows(12, level=lambda n: "easy" if n < 9 else "hard", kind=lambda n: "ab"[n % 2])
    asked = rules(
        dataset="set",
        groups=[{"each": "kind"}],
        label="level",
        label_source="generated",
        made="synthetic",
    )
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["m"])
    found = draw_sample(table, asked)
    assert found.table_4()["groups"] == {
        "a": {"candidates": 6, "sampled": 2},
        "b": {"candidates": 6, "sampled": 2},
    }
    by_label = {row["label"]: row for row in found.table_5()}
    assert by_label["easy"]["original_share"] == 0.75
    assert sum(row["sampled"] for row in by_label.values()) == 4
    assert add_to_corpus(found, corpus) == 12
    assert add_to_corpus(found, corpus) == 0
    frame = tables.reweighting_table(corpus).frame
    assert list(frame["original"]) == [12]
    shown = tables.sampling_table(corpus).frame
    assert list(shown["dataset"]) == ["set"]
    assert shown["evidence"].isna().all()


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        ("TMax", ["Gemini-3-Flash passes at least 2 of 8 runs"]),
        ("FACET", ["none released"]),
        ("SETA", ["part evolve: Qwen3-30B passes at least 2 of 8", "; others: none released"]),
        ("RST", ["Qwen3.5-27B passes a task of the lineage"]),
        ("TW", ["DeepSeek-V4-Pro"]),
    ],
)
def test_the_evidence_of_a_data_set_is_told_in_words(dataset: str, words: list[str]) -> None:
    said = evidence_of(dataset)
    assert said is not None
    assert [word for word in words if word not in said] == []
    assert evidence_of(f"{dataset}-other") is None


def test_the_command_writes_what_it_decided(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["task", "size"])
        writer.writeheader()
        writer.writerows(rows(9, size=lambda n: n))
    asked = rules(groups=[{"name": "size", "split": "size", "into": 3}]).model_dump(
        exclude_none=True
    )
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(asked))
    arguments = ["sample", str(tmp_path / "t.csv"), "--rules", str(tmp_path / "r.yaml")]
    arguments += ["-o", str(tmp_path / "out"), "-n", "5"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("d: 5 of 9 tasks")
    assert len((tmp_path / "out/sample.csv").read_text().splitlines()) == 6
    assert len((tmp_path / "out/decisions.csv").read_text().splitlines()) == 10
    printed = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert printed["table_4"] == json.loads((tmp_path / "out/summary.json").read_text())["table_4"]
    wrong = CliRunner().invoke(app, [*arguments, "--check"])
    assert wrong.exit_code == 2
    assert "--tasks" in wrong.output

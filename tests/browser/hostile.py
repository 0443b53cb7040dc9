"""A corpus made by somebody who means harm: markup, escapes, huge lines, links out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus

SCRIPT = "<script>alert(1)</script>"
IMAGE = "\"'><img src=x onerror=alert(2)>"
BREAK = "</script></pre></textarea><script>alert(3)</script>"
FORMULA = "javascript:alert(4)//&#106;&lt;b&gt;"
LINK = "\x1b]8;;https://evil.example/\x1b\\click me\x1b]8;;\x1b\\"
TRICK = "\x1b[2J\x1b[1;1H\x1b[8mhidden\x1b[0m\x1b]0;title\x07\r over \x08\x08\u202egnp.exe\u2066"
SECRET = "the contents of a file outside of the corpus"
TASK = f"task {IMAGE}"
DATASET = f"set {SCRIPT}"
MODEL = f"model {BREAK}"
RUN = "evil-run"
LINE = 40_000_000


def write_hostile(folder: Path) -> Corpus:
    """The corpus, and beside it a secret that links in it lead to."""
    corpus = Corpus.open_or_create(folder / "hostile", name="hostile", models=[MODEL, "other"])
    secret = folder / "secret.txt"
    secret.write_text(SECRET)
    task: dict[str, Any] = {
        "dataset": DATASET,
        "task_id": TASK,
        "segments": [{"index": 1, "name": SCRIPT, "work": {"lines": 5, "tokens": 9, "chars": 50}}],
        "category": IMAGE,
        "author_rating": BREAK,
        "parent": FORMULA,
        "provenance": "scripted",
    }
    run: dict[str, Any] = {
        "dataset": DATASET,
        "task_id": TASK,
        "model": MODEL,
        "cap": None,
        "purpose": "free",
        "verdict": "failed",
        "stop": "submitted",
        "turns": 4,
        "detail": f"{SCRIPT}{LINK}{IMAGE}",
        "provenance": "scripted",
    }
    runs = [
        run | {"run_id": RUN, "attempt": 1},
        run | {"run_id": "linked-run", "attempt": 2},
        run | {"run_id": "binary-run", "attempt": 1, "cap": 5, "purpose": "ladder"},
        run | {"run_id": f"../../{SCRIPT}", "attempt": 2, "cap": 5, "purpose": "ladder"},
    ]
    (corpus.path / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    (corpus.path / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs))
    label = {"action": "add", "dataset": DATASET, "task_id": TASK, "run_id": RUN, "at": SCRIPT}
    labels = [label | {"kind": kind, "text": f"{kind} {IMAGE}"} for kind in ("label", "note")]
    (corpus.path / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    _trial(corpus, RUN)
    (corpus.path / "trials/linked-run").symlink_to(folder)
    _binary(corpus, secret)
    return corpus


def _step(message: str, typed: str, output: str) -> dict[str, Any]:
    return {
        "source": "agent",
        "message": message,
        "timestamp": "2026-11-30T02:31:40+00:00",
        "tool_calls": [
            {"function_name": "bash_command", "arguments": {"keystrokes": typed, "duration": 1}}
        ],
        "observation": {"results": [{"content": output}]},
        "metrics": {"prompt_tokens": 10, "completion_tokens": 5},
    }


def _trial(corpus: Corpus, run_id: str) -> None:
    folder = corpus.trial_dir(run_id)
    (folder / "agent").mkdir(parents=True)
    (folder / "verifier").mkdir()
    steps = [
        {"source": "user", "message": f"Task Description:\n{SCRIPT} do {IMAGE} {LINK}"},
        _step(f"Analysis: {SCRIPT}\nPlan: {IMAGE}", f"echo '{BREAK}'\n", f"{SCRIPT} {LINK} end"),
        _step(BREAK, TRICK, f"{TRICK}\n\x1b[31mred\x1b[0m after"),
        _step("Analysis: long\nPlan: wait", "cat big\n", "y" * LINE + SCRIPT),
        _step('{"analysis": "' + SCRIPT, "\ud800\x00\x1b[?1049h", "half \ud800 and nul \x00 done"),
    ]
    name = {"name": SCRIPT, "model_name": IMAGE}
    document = {"schema_version": "ATIF-v1.8", "agent": name, "steps": steps}
    (folder / "agent/trajectory.json").write_text(json.dumps(document))
    header = {"version": 2, "width": 80, "height": 24, "timestamp": 1796005899, "title": SCRIPT}
    events = [
        [0.1, "o", f"{LINK}\r\n{SCRIPT}\r\n"],
        [0.2, "o", TRICK],
        [0.3, "o", "z" * 3_000_000],
        [0.4, "m", SCRIPT],
        [0.5, "o", "the end"],
    ]
    lines = "\n".join(json.dumps(line) for line in [header, *events])
    (folder / "agent/recording.cast").write_bytes(lines.encode() + b"\n\xff\xfe{]\n")
    (folder / "verifier/test-stdout.txt").write_bytes(f"{SCRIPT} {LINK}".encode() + b"\xff\xfe\x80")
    (folder / f"verifier/{SCRIPT.replace('/', '_')}.txt").write_text("named")
    (folder / "result.json").write_text('{"step_results": "' + SCRIPT + '"}')


def _binary(corpus: Corpus, secret: Path) -> None:
    """Files that are nothing they seem, and links out of the corpus."""
    folder = corpus.trial_dir("binary-run")
    (folder / "agent").mkdir(parents=True)
    (folder / "agent/trajectory.json").write_bytes(b"\xff\xfe\x00{" * 500)
    (folder / "agent/recording.cast").symlink_to(secret)
    (folder / "verifier").symlink_to(secret.parent)
    (folder / "test-stdout.txt").symlink_to(secret)

"""The three families of calibration tasks (Appendix B, "Choice of models").

A model that measures depth must merge commands into fewer turns once it is told the cap;
otherwise it measures work. Each step of these tasks takes one short command or a few.

*parallel*: independent steps, all listed in one plain file. *static-chain*: each step needs the
answer to the one before it, but all stand in plain files from the start. Both can be done in two
or three turns, by reading the steps and writing a script. *control*: text and data of each step
are encrypted with the answer to the step before, so that each step needs a turn of its own.

What keeps an answer from being had otherwise:

* A seal is 16 random hex digits. It stands in its data file (in a static chain also as a name in
  the next one) and nowhere else; verifiers hold SHA-256 digests only, and are not in the image.
* A sealed step opens with three seals of 400 rows in order: 400 * 399 * 398 = 63,520,800 guesses,
  each costing one scrypt of 32 MiB. At 25 ms a guess, several times faster than the machines
  this was written on, that is 18 days of the one CPU that the task allows; 256 such CPUs would
  need 1.7 hours, against a limit of 30 minutes.

What it does not keep a clever model from: it could write, in an early turn, a program that parses
the steps it has not seen. Nine kinds of selection are spread over the steps so that each of the
first nine brings at least one that no earlier step had; such a program would have to guess the
wording of kinds it has never read. After nine steps nothing is new, and a program written then
can finish alone. And whoever has this generator and the seed can compute every answer; neither
is in the container.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from depthkit.errors import DepthkitError
from depthkit.tasks.calibration.draw import Draw, table, tsv
from depthkit.tasks.calibration.selections import plan_kinds, select
from depthkit.tasks.calibration.unlock import SALT_BYTES, seal
from depthkit.tasks.text import directory_digest, printable

MAX_STEPS = 99
DEFAULT_NAMES = ("parallel-10-s1", "static-chain-10-s1", "control-6-s1")
"""The sizes of Appendix B."""

_NAME = re.compile(r"(parallel|static-chain|control)-([1-9]\d{0,17})-s(\d{1,18})")

Files = dict[str, str | bytes]
"""Contents of a task directory by relative path."""


def family_name(family: str, steps: int, seed: int) -> str:
    """The name of a calibration task, such as ``control-6-s1``."""
    return f"{family}-{steps}-s{seed}"


def parse_name(name: str) -> tuple[str, int, int]:
    """Family, number of steps and seed of a name such as ``control-6-s1``.

    Raises:
        DepthkitError: the name does not have this form.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise DepthkitError(
            f"{printable(name[:200])}: is no name of a calibration task; it must be a family "
            f"({', '.join(FAMILIES)}), a number of steps and a seed (of at most 18 digits), such "
            "as control-6-s1."
        )
    return match[1], int(match[2]), int(match[3])


def write_family(out: Path, family: str, steps: int, seed: int) -> Path:
    """Write one calibration task into ``out`` and return its directory.

    The bytes depend on the arguments alone. A directory of that name that already holds them is
    left as it is; half a task is never left behind.

    Args:
        out: The directory of the data set; made if it is missing.
        family: ``parallel``, ``static-chain`` or ``control``.
        steps: Number of steps, 1 to :data:`MAX_STEPS`.
        seed: Seed, 0 or greater.

    Raises:
        DepthkitError: an unknown family, steps or seed out of range, or a directory of that
            name with other contents.
    """
    if family not in FAMILIES:
        raise DepthkitError(
            f"family is {printable(family)!r}; it must be one of {', '.join(FAMILIES)}."
        )
    if not 1 <= steps <= MAX_STEPS:
        raise DepthkitError(f"steps is {steps}; it must be from 1 to {MAX_STEPS}.")
    if seed < 0:
        raise DepthkitError(f"seed is {seed}; it must be 0 or greater.")
    name = family_name(family, steps, seed)
    files: Files = {
        **_common_files(),
        **FAMILIES[family](steps, Draw(name), name),
    }
    target = out / name
    out.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=out))
    try:
        _write(unfinished, files)
        if target.exists():
            if directory_digest(target) != directory_digest(unfinished):
                raise DepthkitError(
                    f"{printable(str(target))}: exists with other contents; remove it or choose "
                    "another directory."
                )
        else:
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _write(directory: Path, files: Files) -> None:
    """Modes are set one by one, so that the umask does not decide what is in an image."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o755 if name.endswith((".sh", "/unlock")) else 0o644)
    for path in (directory, *(p for p in directory.rglob("*") if p.is_dir())):
        path.chmod(0o755)


# --- the three families: (steps, draw, name) to files ---


def _parallel(steps: int, draw: Draw, name: str) -> Files:
    lines: list[str] = []
    commands: list[str] = []
    answers: list[str] = []
    files: Files = {}
    for step in range(1, steps + 1):
        rows = table(draw)
        row = draw.one(rows)
        files[f"environment/app/data/{step:02}.tsv"] = tsv(rows)
        lines.append(_step_line(step, row.name))
        commands.append(_look_up(step, f"'$1 == \"{row.name}\" {{print $4}}'"))
        answers.append(row.seal)
    return {
        **files,
        "environment/app/steps.txt": "".join(lines),
        "instruction.md": _steps_instruction(steps, "The steps do not depend on each other."),
        "solution/solve.sh": _solution(f"{name}: one look-up a step.", commands),
        "tests/test.sh": _test(_answer_files(answers)),
    }


def _static_chain(steps: int, draw: Draw, name: str) -> Files:
    rows = table(draw)
    row = draw.one(rows)
    lines = [_step_line(1, row.name)]
    commands = [_look_up(1, f"'$1 == \"{row.name}\" {{print $4}}'")]
    answers = [row.seal]
    files: Files = {"environment/app/data/01.tsv": tsv(rows)}
    for step in range(2, steps + 1):
        rows = table(draw, [previous.seal for previous in rows])
        files[f"environment/app/data/{step:02}.tsv"] = tsv(rows)
        lines.append(_step_line(step, f"the answer to step {step - 1}"))
        commands.append(
            _look_up(step, f"-v name=\"$(cat answers/{step - 1})\" '$1 == name {{print $4}}'")
        )
        answers.append(next(row.seal for row in rows if row.name == answers[-1]))
    return {
        **files,
        "environment/app/steps.txt": "".join(lines),
        "instruction.md": _steps_instruction(
            steps, "From step 2 on, each step needs the answer to the step before it."
        ),
        "solution/solve.sh": _solution(
            f"{name}: each look-up takes the answer to the one before.", commands
        ),
        "tests/test.sh": _test(_answer_files(answers)),
    }


def _control(steps: int, draw: Draw, name: str) -> Files:
    commands: list[str] = []
    files: Files = {}
    answer = ""
    for step, kinds in enumerate(plan_kinds(steps, draw), start=1):
        rows = table(draw)
        selections = select(kinds, rows, draw)
        last = "Write the answer to /app/answer.txt"
        text = "\n".join(
            (
                f"Step {step}",
                f"From /app/step-{step}.tsv take these seals and join them with hyphens, "
                "in this order:",
                *(f"- the seal {selection.phrase}" for selection in selections),
                last
                if step == steps
                else f"Open the next step with: /app/unlock {step + 1} ANSWER",
                "",
            )
        )
        if step == 1:
            files["environment/app/step-1.txt"] = text
            files["environment/app/step-1.tsv"] = tsv(rows)
        else:
            salt = hmac.digest(name.encode(), f"salt {step}".encode(), "sha256")[:SALT_BYTES]
            files[f"environment/app/sealed/{step}"] = seal(step, answer, text, tsv(rows), salt)
        for letter, selection in zip("abc", selections, strict=True):
            command = selection.command.replace("{file}", f"step-{step}.tsv")
            commands.append(f"{letter}=$({command})")
        commands.append(
            'echo "$a-$b-$c" > answer.txt' if step == steps else f'./unlock {step + 1} "$a-$b-$c"'
        )
        answer = "-".join(selection.row.seal for selection in selections)
    unlock = resources.files("depthkit.tasks.calibration").joinpath("unlock.py")
    return {
        **files,
        "environment/app/unlock": unlock.read_bytes(),
        "instruction.md": _control_instruction(steps),
        "solution/solve.sh": _solution(f"{name}: each answer opens the next step.", commands),
        "tests/test.sh": _test([("/app/answer.txt", answer)]),
    }


FAMILIES: dict[str, Callable[[int, Draw, str], Files]] = {
    "parallel": _parallel,
    "static-chain": _static_chain,
    "control": _control,
}


# --- the texts ---


def _step_line(step: int, name: str) -> str:
    file = f"/app/data/{step:02}.tsv"
    return f"Step {step}. From {file} take the seal of the row whose name is {name}.\n"


def _look_up(step: int, program: str) -> str:
    return f"awk -F'\\t' {program} data/{step:02}.tsv > answers/{step}"


def _answer_files(answers: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"/app/answers/{step}", answer) for step, answer in enumerate(answers, start=1)]


def _steps_instruction(steps: int, order: str) -> str:
    return f"""\
The file /app/steps.txt lists {steps} steps, one a line. Each asks for one seal from a table in
/app/data. {order}

The tables are text files without a header line. Their columns, separated by tabs, are name, zone,
weight and seal.

Write the answer to step i, the seal alone, to the file /app/answers/i: the answer to step 1 to
/app/answers/1, and so on up to /app/answers/{steps}. The directory /app/answers exists.
"""


def _control_instruction(steps: int) -> str:
    return f"""\
This task has {steps} steps. Step 1 is written in /app/step-1.txt and its table is /app/step-1.tsv.
Every later step is sealed. The command

    /app/unlock STEP ANSWER

with the answer to the step before it prints a step and writes its table to /app/step-STEP.tsv. For
example, /app/unlock 2 followed by the answer to step 1 opens step 2.

The tables are text files without a header line. Their columns, separated by tabs, are name, zone,
weight and seal. Lines are counted from 1, "first" and "last" go by the order of the lines, and
weights are whole numbers.

Write the answer to the last step to /app/answer.txt.
"""


def _solution(what: str, commands: Sequence[str]) -> str:
    head = f"#!/bin/bash\n# Reference solution of {what}\nset -eu\ncd /app\n"
    return head + "".join(f"{command}\n" for command in commands)


def _test(answers: Sequence[tuple[str, str]]) -> str:
    checks = "".join(
        f"check {path} {hashlib.sha256(answer.encode()).hexdigest()}\n" for path, answer in answers
    )
    return f"""\
#!/bin/bash
# Reward 1 if every answer is right, else 0. The answers are known here by their SHA-256 only.
mkdir -p /logs/verifier
reward=1

check() {{
  local answer digest
  if [[ ! -f $1 ]]; then
    echo "$1: missing"
    reward=0
    return
  fi
  # The command substitution drops newlines at the end; nothing else is forgiven.
  answer=$(head -c 200 "$1" | tr '\\0' '?')
  digest=$(printf '%s' "$answer" | sha256sum | cut -d' ' -f1)
  if [[ $digest == "$2" ]]; then
    echo "$1: right"
  else
    echo "$1: wrong"
    reward=0
  fi
}}

{checks}
echo "$reward" > /logs/verifier/reward.txt
"""


def _common_files() -> Files:
    # RUN and not a placeholder file: the directory is to be empty.
    return {
        "environment/Dockerfile": (
            "FROM depthkit/base:1\nWORKDIR /app\nCOPY app/ /app/\nRUN mkdir -p /app/answers\n"
        ),
        "task.toml": """\
schema_version = "1.4"

[metadata]
category = "calibration"

[metadata.depthkit]
group = "synthetic"

[agent]
timeout_sec = 1800.0

[verifier]
timeout_sec = 120.0

[environment]
build_timeout_sec = 600.0
network_mode = "no-network"
cpus = 1
memory_mb = 1024
""",
    }

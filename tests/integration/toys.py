"""Small real tasks and scripted models for trials in containers."""

from __future__ import annotations

import json
from pathlib import Path

TASK_TOML = """\
schema_version = "1.1"

[metadata]
difficulty = "easy"

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 60.0

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
"""

TEST_SH = """\
#!/bin/bash
reward=0
if [ "$(cat /app/out 2>/dev/null)" = "done" ]; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""


def write_toy(
    folder: Path,
    *,
    instruction: str = "Write done to /app/out.",
    test: str = TEST_SH,
    toml: str = TASK_TOML,
) -> Path:
    """A task that asks for one file; its folder's name is the task's."""
    for name, text in {
        "task.toml": toml,
        "instruction.md": instruction + "\n",
        "environment/Dockerfile": "FROM depthkit/base:1\nWORKDIR /app\n",
        "tests/test.sh": test,
        "solution/solve.sh": "#!/bin/bash\necho done > /app/out\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


SEGMENT_TEST = """\
#!/bin/bash
# canary-of-the-checks-of-segment-{i}
reward=0
if [ "$(cat /app/out-{i} 2>/dev/null)" = "part-{i}" ]; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""


def write_segments(folder: Path, k: int) -> Path:
    """A task of ``k`` segments; segment i asks for the file /app/out-i."""
    steps = "".join(f'\n[[steps]]\nname = "s{i}"\n' for i in range(1, k + 1))
    files = {
        "task.toml": TASK_TOML + steps,
        "environment/Dockerfile": "FROM depthkit/base:1\nWORKDIR /app\n",
    }
    for i in range(1, k + 1):
        files[f"steps/s{i}/instruction.md"] = f"Write part-{i} to /app/out-{i}.\n"
        files[f"steps/s{i}/tests/test.sh"] = SEGMENT_TEST.format(i=i)
        files[f"steps/s{i}/solution/solve.sh"] = f"#!/bin/bash\necho part-{i} > /app/out-{i}\n"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def reply(*commands: str, complete: bool = False, wait: float = 0.2) -> str:
    """A reply of terminus-2's JSON format with these command lines."""
    return json.dumps(
        {
            "analysis": "As asked.",
            "plan": "Go on.",
            "commands": [{"keystrokes": f"{c}\n", "duration": wait} for c in commands],
            "task_complete": complete,
        }
    )

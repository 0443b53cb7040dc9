"""Write the bundled generation log again, of scripted authors.

Needs a Docker engine with the base image. One task is accepted after mends, one is rejected, and
one is accepted on a seed that was released with a task.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from redis_task import BY_HAND_ALONE, MENDS, SEED
from scripted_author import MODELS, ScriptedAuthor
from written_task import TASK, write_seed

from depthkit.generation.bundled import LOGS
from depthkit.generation.run import generate_task
from depthkit.trials.scripted.server import ScriptedServer

AT_ONCE = {
    1: [[TASK.plan(), *TASK.writes(1), *TASK.done(1)]],
    2: [[*TASK.writes(2), *TASK.done(2)]],
}


def main() -> None:
    os.environ["AUTHOR_KEY"] = "none-needed"
    log = LOGS["demo"]
    log.unlink(missing_ok=True)
    scripts = {"scripted-author": MENDS, "by-hand": BY_HAND_ALONE, "at-once": AT_ONCE}
    policies = {name: ScriptedAuthor(script) for name, script in scripts.items()}
    with tempfile.TemporaryDirectory() as name, ScriptedServer(policies) as server:
        folder = Path(name)
        readings = write_seed(folder / "readings")
        registry = "".join(MODELS.format(name=each, url=server.base_url) for each in policies)
        (folder / "models.toml").write_text(registry)
        for task, seed, model, mends in (
            ("shop-carts", SEED, "scripted-author", None),
            ("made-by-hand", SEED, "by-hand", 1),
            ("largest-readings", readings, "at-once", None),
        ):
            done = generate_task(
                seed,
                folder / "tasks" / task,
                k=2,
                model=model,
                models_file=folder / "models.toml",
                log_file=log,
                strict=True,
                mends=mends,
                provenance="scripted",
            )
            print(task, done.outcome, done.reason or "")


if __name__ == "__main__":
    main()

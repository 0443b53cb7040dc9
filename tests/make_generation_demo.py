"""Write the bundled generation log again, of a scripted author.

Needs a Docker engine with the base image. One task is accepted after mends, one is rejected.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from redis_task import BY_HAND_ALONE, MENDS, SEED
from scripted_author import MODELS, ScriptedAuthor

from depthkit.generation.bundled import LOGS
from depthkit.generation.run import generate_task
from depthkit.trials.scripted.server import ScriptedServer


def main() -> None:
    os.environ["AUTHOR_KEY"] = "none-needed"
    log = LOGS["demo"]
    log.unlink(missing_ok=True)
    policies = {"scripted-author": ScriptedAuthor(MENDS), "by-hand": ScriptedAuthor(BY_HAND_ALONE)}
    with tempfile.TemporaryDirectory() as name, ScriptedServer(policies) as server:
        folder = Path(name)
        registry = "".join(MODELS.format(name=each, url=server.base_url) for each in policies)
        (folder / "models.toml").write_text(registry)
        for task, model, k, mends in (
            ("shop-carts", "scripted-author", 2, None),
            ("made-by-hand", "by-hand", 2, 1),
        ):
            done = generate_task(
                SEED,
                folder / "tasks" / task,
                k=k,
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

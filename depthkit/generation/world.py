"""The containers of an author: the one to work in, and the clean one that replays.

The clean container is in state e_m, reached by the reference solutions alone. After a segment it
becomes the one to work in, so that nothing that was done by hand only goes on. Where the next
replay finds no clean container in the state it needs, the segments before it are played again,
from a snapshot as far as there is one.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from docker.models.images import Image

from depthkit.errors import DepthkitError
from depthkit.generation.draft import Draft
from depthkit.generation.terminal import Terminal
from depthkit.tasks.text import printable
from depthkit.trials.environment import ContainerDiedError, DockerEnvironment
from depthkit.trials.play import (
    SOLUTION,
    offline_container,
    play_solution,
    resting_image,
    run_check_script,
)
from depthkit.trials.snapshot import NoSnapshotError, drop_snapshot
from depthkit.trials.traces import as_root

LOG_CHARS = 2000
"""How much of what else checks print an author is told."""


@dataclass(frozen=True)
class Replayed:
    """What a clean replay of a segment gave.

    Attributes:
        passed: Whether the solution ended with status 0 and all checks passed.
        segment: Which, from 1.
        status: Exit status of the solution; ``None`` if it did not end in its time.
        said: The end of what it printed.
        checks: Name, outcome and reason of each check.
        finished: Whether the check script reached its last line.
        log: The end of what else the checks printed.
        seconds: In all, segments played before it included.
    """

    passed: bool
    segment: int
    status: int | None
    said: str = ""
    checks: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False
    log: str = ""
    seconds: float = 0.0

    def row(self) -> dict[str, Any]:
        """As an author is told."""
        return asdict(self)

    def reason(self) -> str:
        """Why it did not pass, in a line."""
        if self.status is None:
            return f"the solution of segment {self.segment} did not end in its time"
        failed = [check for check in self.checks if not check["passed"]]
        if failed:
            return f"segment {self.segment}, {failed[0]['name']}: {failed[0]['reason']}"
        if not self.finished:
            last = self.log.strip().splitlines()[-1:]
            return f"the check script of segment {self.segment} stops: {''.join(last)}"
        if self.status != 0:
            last = self.said.splitlines()[-1:]
            return (
                f"the solution of segment {self.segment} ended with status {self.status}"
                + f": {''.join(last)}" * bool(last)
            )
        return "" if self.passed else f"segment {self.segment} has no check, or two of one name"


@dataclass
class _Box:
    """A container that is open."""

    environment: DockerEnvironment
    state: tuple[str, ...]
    """Digests of the segments played in it; for the work container, when it was new."""
    close: contextlib.AsyncExitStack


class World:
    """The containers of one draft; to be closed."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._work: _Box | None = None
        self._clean: _Box | None = None
        self._terminal: Terminal | None = None
        self._images: dict[tuple[str, ...], Image] = {}

    async def close(self) -> None:
        """Remove the containers and snapshots."""
        await self._drop_work()
        await self._drop_clean()
        for image in self._images.values():
            await drop_snapshot(image)
        self._images.clear()

    # --- the work container ---

    async def work(self) -> Terminal:
        """The terminal of the work container, started in e_{s-1} where there is none.

        Raises:
            DepthkitError: The segments before do not pass.
        """
        if self._terminal is None:
            self._work = await self._take_clean(self._draft.finished)
            self._terminal = Terminal(self._work.environment)
        return self._terminal

    async def reset(self) -> None:
        """Forget the work container; the next one is in e_{s-1}."""
        await self._drop_work()

    async def _drop_work(self) -> None:
        box, self._work, self._terminal = self._work, None, None
        if box is not None:
            await box.close.aclose()

    async def _take_clean(self, number: int) -> _Box:
        box = await self._clean_at(number)
        self._clean = None
        return box

    # --- the clean container ---

    async def replay(self, number: int) -> Replayed:
        """Play a segment in a clean container in the state before it, and run its checks.

        Raises:
            DepthkitError: A segment before it does not pass any more.
            ContainerDiedError: The clean container died.
        """
        began = time.monotonic()
        box = await self._clean_at(number - 1)
        try:
            played = await self._play(box, number)
        except BaseException:
            await self._drop_clean()
            raise
        if not played.passed:
            await self._drop_clean()
        return Replayed(**{**asdict(played), "seconds": round(time.monotonic() - began, 2)})

    async def hand_over(self) -> None:
        """Let the clean container be the next to work in, where it has played all that is finished.

        Called when a segment is finished: the next one starts from the state it really leaves.
        """
        await self._drop_work()
        if self._clean is not None and self._clean.state != self._digests(self._draft.finished):
            await self._drop_clean()

    async def _clean_at(self, number: int) -> _Box:
        """The clean container after so many segments; they are played where it has not."""
        wanted = self._digests(number)
        if self._clean is None or self._clean.state != wanted:
            await self._drop_clean()
            self._clean = await self._played_to(number, wanted)
        await self._snapshot(self._clean)
        return self._clean

    async def _played_to(self, number: int, wanted: tuple[str, ...]) -> _Box:
        first = next((n for n in range(number, 0, -1) if wanted[:n] in self._images), 0)
        task = self._draft.load(number) if number else self._draft.bare()
        stack = contextlib.AsyncExitStack()
        try:
            environment = await stack.enter_async_context(
                offline_container(task, name="author", image=self._images.get(wanted[:first]))
            )
            box = _Box(environment, wanted[:first], stack)
            for each in range(first + 1, number + 1):
                played = await self._play(box, each)
                if not played.passed:
                    raise DepthkitError(
                        f"segment {each} does not pass any more: {played.reason()}; go back to it."
                    )
        except BaseException:
            await stack.aclose()
            raise
        return box

    async def _drop_clean(self) -> None:
        box, self._clean = self._clean, None
        if box is not None:
            await box.close.aclose()

    def _digests(self, number: int) -> tuple[str, ...]:
        return tuple(self._draft.digest(each) for each in range(1, number + 1))

    async def _play(self, box: _Box, number: int) -> Replayed:
        task = self._draft.load(number)
        state = self._digests(number)
        played = await play_solution(box.environment, task, number - 1)
        # What stands beside a solution is no result, and the next one must not rest on it.
        await as_root(box.environment, f"rm -rf {SOLUTION}")
        if played.status is None:
            return Replayed(False, number, None, played.said)
        outcome = await run_check_script(box.environment, task, number - 1)
        box.state = state
        return Replayed(
            passed=outcome.passed and played.status == 0,
            segment=number,
            status=played.status,
            said=played.said,
            checks=[asdict(result) for result in outcome.results],
            finished=outcome.finished,
            log=printable_lines(outcome.log)[-LOG_CHARS:],
        )

    async def _snapshot(self, box: _Box) -> None:
        """Keep a state in which nothing runs: it may be asked for again."""
        if not box.state or box.state in self._images:
            return
        with contextlib.suppress(NoSnapshotError, ContainerDiedError):
            image = await resting_image(box.environment)
            if image is not None:
                self._images[box.state] = image


def printable_lines(text: str) -> str:
    """Text from a container, its line ends kept."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))

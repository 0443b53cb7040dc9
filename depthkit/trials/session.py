"""The terminal of terminus-2, with as few commands in the container as it takes.

What it types, waits for and reads is Harbor's. A command over the engine costs some 40 ms of
processor time, which is more than all the rest of a scripted turn.
"""

from __future__ import annotations

from typing import override

from harbor.agents.terminus_2.tmux_session import TmuxSession

from depthkit.trials.environment import DockerEnvironment

HISTORY_LINES = 10_000_000
"""Harbor's number, for windows after the first."""


class Session(TmuxSession):
    """Harbor's session, started with one command and not asked twice whether it is there."""

    _answered: bool | None = None

    @override
    async def start(self) -> None:
        """Start tmux, of which :class:`DockerEnvironment` has made sure.

        Raises:
            RuntimeError: If it does not start.
        """
        if not isinstance(self.environment, DockerEnvironment):
            await super().start()
            return
        started = await self.environment.exec(
            f"{self._tmux_start_session} \\; set-option -g history-limit {HISTORY_LINES}",
            user=self._user,
        )
        if started.return_code != 0:
            raise RuntimeError(f"tmux did not start: {started.stderr or started.stdout}")

    @override
    def _send_keys_command(self, keys: list[str]) -> str:
        # tmux takes a semicolon at the end of an argument for the end of its own command.
        typed = [f"{key[:-1]}\\;" if key.endswith(";") else key for key in keys]
        command: str = super()._send_keys_command(typed)
        return command

    @override
    async def capture_pane(self, capture_entire: bool = False) -> str:
        command = self._tmux_capture_pane(capture_entire=capture_entire)
        result = await self.environment.exec(command, user=self._user)
        self._answered = result.return_code == 0
        return result.stdout or ""

    @override
    async def is_session_alive(self) -> bool:
        """Whether tmux answers; where the screen has just been read, whether it could be.

        Harbor asks at the start of each turn, right after it has read the screen.
        """
        answered, self._answered = self._answered, None
        return await self.answers() if answered is None else answered

    async def answers(self) -> bool:
        """Whether tmux answers now.

        Raises:
            ContainerDiedError: If the container itself is gone.
        """
        return await super().is_session_alive()

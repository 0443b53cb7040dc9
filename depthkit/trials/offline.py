"""An environment without network, whatever the task declares (given to Harbor by import path)."""

from __future__ import annotations

from typing import override

from depthkit.trials.environment import DockerEnvironment


class OfflineEnvironment(DockerEnvironment):
    """:class:`DockerEnvironment` on Docker's ``none`` network."""

    @property
    @override
    def _network_disabled(self) -> bool:
        return True

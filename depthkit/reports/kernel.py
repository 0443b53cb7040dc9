"""The kernels in which notebooks run: this very interpreter, and nobody's own start-up files.

Importing pandas, HoloViews, Bokeh and Matplotlib costs more time than most notebooks. A kernel that
is forked from a process that has imported them has them at once, and is still a process of its own,
so that no notebook sees what another one did.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from multiprocessing import forkserver, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

import depthkit

NAME = "depthkit"
"""Of the kernel, and of what starts it by forking."""

_PRELOADED = "depthkit.reports.preload"


def kernel_manager(
    scratch: Path, environment: Mapping[str, str], *, fork: bool
) -> type[AsyncKernelManager]:
    """What starts kernels with these variables, whatever kernels are registered on this machine.

    Args:
        scratch: A directory for what a kernel needs while it runs.
        environment: Variables that it has beside those of this process.
        fork: Fork it, see :func:`prepare_to_fork`. It has the code as it was then.
    """
    home = scratch.resolve()
    folder = home / "kernels" / NAME
    folder.mkdir(parents=True)
    spec: dict[str, Any] = {
        "argv": [
            sys.executable,
            *("-m", "ipykernel_launcher", "--log-level=CRITICAL", "-f", "{connection_file}"),
        ],
        "display_name": NAME,
        "language": "python",
        "env": {
            **environment,
            "IPYTHONDIR": str(home / "ipython"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        },
    }
    if fork:
        spec["metadata"] = {"kernel_provisioner": {"provisioner_name": NAME}}
    (folder / "kernel.json").write_text(json.dumps(spec))

    class Manager(AsyncKernelManager):
        def __init__(self, **kwargs: Any) -> None:
            found = KernelSpecManager(kernel_dirs=[str(folder.parent)], ensure_native_kernel=False)
            file = str(home / "connection.json")
            super().__init__(kernel_spec_manager=found, connection_file=file, **kwargs)

    return Manager


class ForkedProvisioner(LocalProvisioner):
    """Starts a kernel by forking; all else is as for one that starts as a command."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Fork a kernel.

        Args:
            cmd: Only the arguments after ``ipykernel_launcher`` matter.
            kwargs: ``env`` and ``cwd`` of the kernel.
        """
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        process = get_context("forkserver").Process(
            target=run_kernel,
            args=(arguments, dict(kwargs["env"]), kwargs.get("cwd"), depthkit.__file__),
        )
        process.start()
        assert process.pid is not None
        self.process = _Handle(process)  # type: ignore[assignment]
        # Until the child has made its session there is no such group, and signals go to it alone
        self.pid = self.pgid = process.pid
        self.cwd = kwargs.get("cwd") or Path.cwd()
        return self.connection_info


class _Handle:
    """A forked process with the methods of a ``Popen`` that a provisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive() and self.pid is not None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def run_kernel(
    arguments: Sequence[str], environment: Mapping[str, str], cwd: str | None, package: str
) -> None:
    """Be a kernel, in a process just forked.

    Args:
        arguments: Of ``ipykernel_launcher``.
        environment: Replaces that of this process.
        cwd: Its working directory.
        package: File of the package that the caller runs.

    Raises:
        RuntimeError: this process imported another copy of the package.
    """
    if depthkit.__file__ != package:
        raise RuntimeError(f"the kernel has {depthkit.__file__}, not {package}")
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    if cwd:
        os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["ipykernel_launcher", *arguments]
    from ipykernel.kernelapp import IPKernelApp

    threading.Thread(target=_end_with_parent, daemon=True).start()
    IPKernelApp.launch_instance(list(arguments))


def _end_with_parent() -> None:
    """Leave no kernel behind when the process that makes the report is killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def prepare_to_fork() -> bool:
    """Begin to import what kernels need; false where forking a loaded process is not safe."""
    if sys.platform != "linux":
        return False
    get_context("forkserver").set_forkserver_preload([_PRELOADED])
    forkserver.ensure_running()
    factory = KernelProvisionerFactory.instance()
    place = f"{__name__}:{ForkedProvisioner.__name__}"
    factory.provisioners[NAME] = EntryPoint(NAME, place, KernelProvisionerFactory.GROUP_NAME)
    return True

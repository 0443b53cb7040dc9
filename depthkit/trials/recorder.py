"""A recording of the terminal, made outside it.

Harbor records by running asciinema inside the terminal, so that everything passes through the
recorder. The one that distributions ship stops for good once more than about 4 KB are typed at
once: it waits until the shell takes the input, and the shell until it takes the echo. Here tmux
passes the output on to a stream of the engine's, and the file is written as it comes, with times
taken on this side: the terminal is the same with and without a recording, the image needs no
recorder, and the file is there even if the container dies.
"""

from __future__ import annotations

import codecs
import json
import shlex
import threading
import time
import uuid
from pathlib import Path
from typing import TextIO

from docker.errors import DockerException
from docker.models.containers import Container

from depthkit.trials import engine

MOST_BYTES = 64 << 20
"""Of a recording; it says where it ends."""

_READY = b"ready"
_READY_SECONDS = 60.0
_NUDGE_SECONDS = 3.0

# The writer says that it is there with an empty line; until then a second descriptor keeps the
# pipe open, which then has no name any more. C-l draws the prompt again, which came before the
# recording. The stream ends with the window, tmux or the container.
#
# dd, since busybox's cat has the kernel move the data, which locks the pipe for as long as there is
# nothing to move: its other end could neither be opened nor read until the terminal's next output.
# A writer that does not come is given up before the run goes on, or C-l would come in its midst.
COPY = "dd bs=65536"
_STREAM = f"""\
mkfifo {{fifo}} && exec 4<>{{fifo}} 3<{{fifo}} &&
tmux pipe-pane -t {{session}} 'exec >{{fifo}} && echo && exec {COPY} 2>/dev/null' &&
read -r -t {_READY_SECONDS - 5:.0f} -u 3 && exec 4>&- && rm {{fifo}} &&
tmux send-keys -t {{session}} C-l && echo ready >&2 && exec {COPY} <&3 2>/dev/null"""


class Recorder:
    """Records one tmux session as an asciicast of version 2, output only.

    Args:
        container: Where the session runs; bash, dd, mkfifo, rm and tmux are on its PATH.
        path: The file to write.
        session: Name of the session.
        user: The user it belongs to; ``None`` is the container's.
        width: Columns of the terminal.
        height: Rows of the terminal.
    """

    def __init__(
        self,
        container: Container,
        path: Path,
        *,
        session: str,
        user: str | None,
        width: int,
        height: int,
    ) -> None:
        self._container = container
        self._path = path
        self._session = shlex.quote(session)
        self._user = "0" if user == "root" else user or ""
        self._size = (width, height)
        self._ready = threading.Event()
        self.error: str | None = None
        """Why there is no recording, or why it ended early; ``None`` if neither is so."""

    def start(self) -> None:
        """Begin to record, before anything is typed; the file grows until the session ends.

        Takes the place of the session's pipe, if it has one. A recording that fails is said in
        ``error`` and does not fail the run.
        """
        threading.Thread(target=self._write, daemon=True).start()
        until = time.monotonic() + _READY_SECONDS
        while not self._ready.wait(_NUDGE_SECONDS):
            if time.monotonic() > until:
                self.error = f"no output of the terminal came within {_READY_SECONDS:.0f} seconds"
                return
            self._nudge()

    def _nudge(self) -> None:
        """Run another command in the container.

        Now and then the stream stands still, with nothing to do on the machine, and goes on as soon
        as anything else is executed there.
        """
        try:
            self._container.exec_run(["tmux", "has-session"], user=self._user)
        except DockerException as error:
            self.error = str(error)  # the stream says it too, if the container is gone

    def _write(self) -> None:
        script = _STREAM.format(
            fifo=f"/tmp/.recording-{uuid.uuid4().hex}",  # noqa: S108 - in the container
            session=self._session,
        )
        try:
            with self._path.open("w", encoding="utf-8") as out:
                began = time.monotonic()  # the wall clock may step back meanwhile
                width, height = self._size
                header = {
                    "version": 2,
                    "width": width,
                    "height": height,
                    "timestamp": int(time.time()),
                }
                print(json.dumps(header), file=out, flush=True)
                self._copy(script, out, began)
        except (DockerException, OSError) as error:
            self.error = str(error)
        finally:
            self._ready.set()

    def _copy(self, script: str, out: TextIO, began: float) -> None:
        api = engine.client().api
        started = api.exec_create(self._container.id, ["bash", "-c", script], user=self._user)["Id"]
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        failed, full = b"", False
        for text, error in api.exec_start(started, stream=True, demux=True):
            if (error or b"").strip() == _READY:
                self._ready.set()
            elif error:
                failed += error
            elif not full and (decoded := decoder.decode(text or b"")):
                if full := self._path.stat().st_size > MOST_BYTES:
                    # The stream is read on: the terminal must not wait for it.
                    decoded = f"\r\n[depthkit: the recording ends here, at {MOST_BYTES} bytes]\r\n"
                event = [round(time.monotonic() - began, 6), "o", decoded]
                print(json.dumps(event, ensure_ascii=False), file=out, flush=True)
        if failed:
            self.error = failed.decode(errors="replace").strip()[:500]

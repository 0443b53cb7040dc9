"""What the engine's client makes of answers, whatever way it is reached by.

The engine here is a few lines: it sends the headers of a command's output and the output itself in
one piece, as a busy machine or a slow network does.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from depthkit.errors import DepthkitError
from depthkit.trials import engine

OUTPUT = b"first line\nsecond line\n"


class Engine(threading.Thread):
    """Serves whoever connects to a listening socket; ``wrap`` goes around each connection."""

    def __init__(self, listening: socket.socket, wrap=lambda connection: connection) -> None:
        super().__init__(daemon=True)
        self.listening, self.wrap = listening, wrap

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection) -> None:
        connection = self.wrap(connection)
        lines = connection.makefile("rb")
        while request := lines.readline().decode():
            length = 0
            while header := lines.readline().decode().strip().lower():
                if header.startswith("content-length:"):
                    length = int(header.partition(":")[2])
            lines.read(length)
            path = request.split()[1]
            if path.endswith("/start"):
                head = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
                frame = struct.pack(">BxxxL", 1, len(OUTPUT)) + OUTPUT
                connection.sendall(head.encode() + frame)
                lines.close()
                connection.close()
                return
            body = json.dumps(self.answer(path)).encode()
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    @staticmethod
    def answer(path: str) -> object:
        if path.endswith("/version"):
            return {"ApiVersion": "1.41"}
        if path.endswith("/exec/e1/json"):
            return {"ExitCode": 0}
        return {"Id": "e1" if path.endswith("/exec") else "c1"}


def over_unix(folder: Path) -> tuple[str, dict[str, str]]:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "engine.sock"))
    listening.listen()
    Engine(listening).start()
    return f"unix://{folder}/engine.sock", {}


def over_tcp(folder: Path) -> tuple[str, dict[str, str]]:
    listening = socket.create_server(("127.0.0.1", 0))
    Engine(listening).start()
    return f"tcp://127.0.0.1:{listening.getsockname()[1]}", {}


def over_tls(folder: Path) -> tuple[str, dict[str, str]]:
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    (folder / "ca.pem").write_bytes(certificate.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(("127.0.0.1", 0))
    Engine(listening, lambda each: context.wrap_socket(each, server_side=True)).start()
    where = {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(folder)}
    return f"tcp://127.0.0.1:{listening.getsockname()[1]}", where


def over_ssh(folder: Path) -> tuple[str, dict[str, str]]:
    """A real ssh server, which runs `docker system dial-stdio` as the engine above."""
    host_key, user_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    home = folder / ".ssh"
    home.mkdir()
    user_key.write_private_key_file(str(home / "key"))
    (home / "config").write_text(f"Host 127.0.0.1\n  IdentityFile {home}/key\n")
    line = f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n"
    (home / "known_hosts").write_text(line)

    class Server(paramiko.ServerInterface):
        def check_auth_publickey(self, username, key):
            known = key.get_base64() == user_key.get_base64()
            return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

        def get_allowed_auths(self, username):
            return "publickey"

        def check_channel_request(self, kind, chanid):
            return paramiko.OPEN_SUCCEEDED

        def check_channel_exec_request(self, channel, command):
            assert command == b"docker system dial-stdio"
            threading.Thread(target=Engine(listening).serve, args=(channel,), daemon=True).start()
            return True

    def serve() -> None:
        transport = paramiko.Transport(listening.accept()[0])
        transport.add_server_key(host_key)
        transport.start_server(server=Server())

    threading.Thread(target=serve, daemon=True).start()
    return f"ssh://somebody@127.0.0.1:{port}", {"HOME": str(folder)}


@pytest.fixture(autouse=True)
def new_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "SSH_AUTH_SOCK")
    for name in (*names, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    engine.client.cache_clear()
    yield
    engine.client.cache_clear()


@pytest.mark.parametrize("way", [over_unix, over_tcp, over_tls, over_ssh])
def test_output_that_comes_with_the_headers_is_not_lost(way, tmp_path, monkeypatch) -> None:
    host, variables = way(tmp_path)
    for name, value in {"DOCKER_HOST": host, **variables}.items():
        monkeypatch.setenv(name, value)
    container = engine.client().containers.get("c1")
    for _ in range(20):
        done = container.exec_run(["id", "-un"], demux=True)
        assert (done.exit_code, done.output) == (0, (OUTPUT, None))


def test_an_engine_that_never_answers_is_said_to(tmp_path, monkeypatch) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "engine.sock"))
    listening.listen()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 0.2)
    with pytest.raises(DepthkitError, match=r"engine\.sock takes connections but has not answered"):
        engine.client()

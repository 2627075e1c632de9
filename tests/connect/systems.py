"""Servers of a test's own, on loopback: Redis, mosquitto, sshd."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moldau.testing import eventually
from moldau.testing.ports import free_port

START_S = 120


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


class Killable:
    """A server that can be killed and started again. Those that make one say when it `answers`."""

    def __init__(self, command: Sequence[str], folder: Path | None = None) -> None:
        self._command, self._folder = command, folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdout=nowhere, stderr=nowhere, cwd=self._folder)
        eventually(self._is_there, START_S, f"the start of {self._command[0]}")

    def _is_there(self) -> bool:
        assert self._process is not None and self._process.poll() is None, f"{self._command} ended"
        return self.answers()

    def answers(self) -> bool:
        raise NotImplementedError

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_S)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)


@contextmanager
def started(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block; it is there when its port answers."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(port), START_S, f"the start of {command[0]}")
        yield server
    finally:
        server.terminate()
        server.wait(START_S)


@contextmanager
def redis_server() -> Iterator[int]:
    port = free_port()
    with started(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], port
    ):
        yield port


@contextmanager
def mosquitto() -> Iterator[int]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="moldau-mqtt-") as made:
        place = Path(made) / "mosquitto.conf"
        place.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        with started(["mosquitto", "-c", str(place)], port):
            yield port


@contextmanager
def sshd(folder: Path) -> Iterator[dict[str, str]]:
    """A server of SFTP for the user who runs the tests; returns the settings of a connector."""
    port = free_port()
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=START_S)
    if os.geteuid() == 0:  # privileges are separated in this folder
        Path("/run/sshd").mkdir(parents=True, exist_ok=True)
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "Subsystem": "sftp internal-sftp",
    }
    (folder / "sshd.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    host = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host[0]} {host[1]}\n")
    with started([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", str(folder / "sshd.conf")], port):
        yield {
            "sftp.host": "127.0.0.1",
            "sftp.port": str(port),
            "sftp.username": getpass.getuser(),
            "tls.private.key": (folder / "user").read_text(),
            "sftp.known.hosts.file": str(folder / "known"),
        }

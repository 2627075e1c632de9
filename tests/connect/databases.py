"""A MariaDB of a test's own, on a socket in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from moldau.testing import eventually

START_S = 60


class MariaDb:
    """A server that can be killed and started again."""

    def __init__(self, folder: str, flags: Sequence[str]) -> None:
        self.socket, data = f"{folder}/s", f"{folder}/data"
        user = ["--user=root"] if os.geteuid() == 0 else []
        install = ["mariadb-install-db", "--no-defaults", *user, f"--datadir={data}", "--skip-test-db"]
        normal = "--auth-root-authentication-method=normal"
        subprocess.run([*install, normal], check=True, capture_output=True, timeout=START_S)
        where = (f"--datadir={data}", f"--socket={self.socket}", "--skip-networking")
        self._command = ["mariadbd", "--no-defaults", *user, *where, *flags]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        words = ["mariadb", "--no-defaults", "-u", "root", f"--socket={self.socket}", "-e"]
        ask = [*words, "CREATE DATABASE IF NOT EXISTS shop"]
        eventually(lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0, START_S)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_S)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)


@contextmanager
def mariadb_server(*flags: str) -> Iterator[MariaDb]:
    """Run a server, which is stopped and removed at the end."""
    folder = tempfile.mkdtemp(prefix="moldau-mariadb-")
    server: MariaDb | None = None
    try:
        server = MariaDb(folder, flags)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def mariadb(*flags: str) -> Iterator[str]:
    """The address of a server that is stopped and removed at the end."""
    with mariadb_server(*flags) as server:
        yield f"socket={server.socket} user=root database=shop"

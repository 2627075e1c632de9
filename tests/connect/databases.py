"""A MariaDB or a MySQL of a test's own, on a socket in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from moldau.testing import eventually

START_S = 60


MARIADB, MYSQL = "mariadb", "mysql"


class Server:
    """A server that can be killed and started again."""

    def __init__(self, kind: str, folder: str, flags: Sequence[str]) -> None:
        self.socket, data = f"{folder}/s", f"{folder}/data"
        user = ["--user=root"] if os.geteuid() == 0 else []
        if kind == MARIADB:
            program = ["mariadbd", "--no-defaults"]
            install = ["mariadb-install-db", "--no-defaults", "--skip-test-db"]
            install.append("--auth-root-authentication-method=normal")
        else:
            program = ["mysqld", "--no-defaults", "--mysqlx=OFF", "--secure-file-priv=NULL"]
            install = ["mysqld", "--no-defaults", "--initialize-insecure"]
        subprocess.run([*install, *user, f"--datadir={data}"], check=True, capture_output=True, timeout=START_S)
        where = (f"--datadir={data}", f"--socket={self.socket}", "--skip-networking")
        self._command = [*program, *user, *where, *flags]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._is_there, START_S)

    def _is_there(self) -> bool:
        import pymysql

        assert self._process is not None and self._process.poll() is None, f"{self._command} ended"
        try:
            with pymysql.connect(unix_socket=self.socket, user="root") as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        except pymysql.Error:
            return False
        return True

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_S)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)


@contextmanager
def server_of(kind: str, *flags: str) -> Iterator[Server]:
    """Run a server, which is stopped and removed at the end."""
    folder = tempfile.mkdtemp(prefix=f"moldau-{kind}-")
    server: Server | None = None
    try:
        server = Server(kind, folder, flags)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def mariadb(*flags: str) -> Iterator[str]:
    """The address of a server that is stopped and removed at the end."""
    with server_of(MARIADB, *flags) as server:
        yield f"socket={server.socket} user=root database=shop"

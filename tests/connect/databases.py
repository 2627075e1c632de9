"""A MariaDB or a MySQL of a test's own, on a socket in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.connect.systems import START_S, Killable

MARIADB, MYSQL = "mariadb", "mysql"


class Server(Killable):
    """A server whose data stays when it is killed."""

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
        # A server that starts removes the temporary tables of all others from the folder that they share.
        temporary = f"{folder}/tmp"
        os.mkdir(temporary)
        places = (f"--datadir={data}", f"--tmpdir={temporary}")
        subprocess.run([*install, *user, *places], check=True, capture_output=True, timeout=START_S)
        where = (*places, f"--socket={self.socket}", "--skip-networking")
        super().__init__([*program, *user, *where, *flags])

    def answers(self) -> bool:
        import pymysql

        try:
            with pymysql.connect(unix_socket=self.socket, user="root") as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        except pymysql.Error:
            return False
        return True


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

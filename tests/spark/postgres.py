"""A PostgreSQL of a test's own, on a socket in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_S = 60


@contextmanager
def postgres(**settings: str) -> Iterator[str]:
    """The address of a server that is stopped and removed at the end. It refuses to run as root: `nobody` runs it."""
    folder = tempfile.mkdtemp(prefix="moldau-postgres-")
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        who = {"user": "nobody"}
    data = str(Path(folder) / "data")
    quiet: dict[str, Any] = {"check": True, "capture_output": True, "timeout": START_S, "cwd": folder, **who}
    try:
        subprocess.run(["initdb", "--pgdata", data, "--username", "test", "--auth", "trust", "--no-sync"], **quiet)
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        options += "".join(f" -c {name}={value}" for name, value in settings.items())
        log = str(Path(folder) / "log")
        control = ["pg_ctl", "--pgdata", data, "--log", log, "--wait", "--options", options, "start"]
        subprocess.run(control, **{**quiet, "capture_output": False, "stdout": subprocess.DEVNULL})
        try:
            yield f"host={folder} user=test dbname=postgres"
        finally:
            subprocess.run(["pg_ctl", "--pgdata", data, "--mode", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""The processes that listen on ports of this machine, from /proc of Linux."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LISTENING = "0A"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LONGEST = 80


@dataclass(frozen=True, slots=True)
class Owner:
    """A process; `command` is empty if we may not read it."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def is_free(host: str, port: int) -> bool:
    """Return whether a port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def owner(port: int) -> Owner | None:
    """Return the process that listens on a port; None if there is none, or if we may not know it."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not wanted:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                if any(os.readlink(file) in wanted for file in (process / "fd").iterdir()):
                    return Owner(int(process.name), command(int(process.name)))
    return None


def command(pid: int) -> str:
    """Return the command line of a process, cut off if it is long."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    text = " ".join(words).strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _inodes(port: int) -> Iterator[str]:
    for table in TABLES:
        with contextlib.suppress(OSError), open(table) as file:
            for line in file:
                fields = line.split()
                if len(fields) > 9 and fields[3] == LISTENING and fields[1].endswith(f":{port:04X}"):
                    yield fields[9]

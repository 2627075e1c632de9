"""Ports that stay free until a process of a test listens on them, and while it is restarted.

A port that the system chooses is one of those that it also gives to outgoing connections: between choosing and
listening any client of the machine may get it. Ours lie below all of those, and all processes of a user take
them in turn.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

SINGLE = range(20_000, 32_000)  # Linux gives 32768 and more to connections, others 49152 and more
OFFSETS = range(2_000, 10_000, 29)  # what is added to the ports of a platform ends below the single ones


def free_ports(count: int) -> list[int]:
    """Return ports on which nobody listens, and which are not given again soon."""
    return _next("ports", SINGLE, count, _is_free)


def free_port() -> int:
    """Return a port on which nobody listens."""
    (port,) = free_ports(1)
    return port


def free_offset(ports: Collection[int]) -> int:
    """Return what can be added to all of these ports, each below 10,000, so that nobody listens on them."""
    (offset,) = _next("offsets", OFFSETS, 1, lambda offset: all(_is_free(port + offset) for port in ports))
    return offset


def _next(name: str, numbers: range, count: int, fits: Callable[[int], bool]) -> list[int]:
    """Take the next numbers that fit; the last one that was taken is kept in a file, for all processes."""
    taken: list[int] = []
    with open(Path(tempfile.gettempdir()) / f"moldau-{name}-{os.getuid()}", "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        begin = int(file.read() or 0)
        for number in range(begin, begin + len(numbers)):
            if len(taken) == count:
                break
            if fits(numbers[number % len(numbers)]):
                taken.append(numbers[number % len(numbers)])
                begin = number + 1
        file.truncate(0)
        file.write(b"%d" % (begin % len(numbers)))
    if len(taken) == count:
        return taken
    raise OSError(f"of the {name} from {numbers[0]} to {numbers[-1]} only {len(taken)} are free, and not {count}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True

"""Connections between the driver and its tasks: as long as its line is open, a task keeps its worker.

A task calls the driver, names itself with a token that only tasks of this driver have, and waits for the end of the
connection: the driver has hung up, or is gone. A task that Spark runs again calls under the same number, and the driver
hangs up on the one before, which may not know that it was given up.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
from contextlib import suppress

GREETING_S = 30.0  # for either side to say who it is
MOST_BYTES = 200  # of a greeting
WELCOME = b"+"


class Lines:
    """The driver's end. `address` is where tasks call."""

    def __init__(self, host: str, bind_to: str) -> None:
        self.token = secrets.token_hex(32)
        self._listening = socket.create_server((bind_to, 0))
        self.address = host, int(self._listening.getsockname()[1])
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}
        self._is_closed = False
        threading.Thread(target=self._accept, name="calls of tasks", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._greet, args=(caller,), name="greeting of a task", daemon=True).start()

    def _greet(self, caller: socket.socket) -> None:
        caller.settimeout(GREETING_S)
        try:
            token, _, number = _read_line(caller).partition(" ")
            if not (hmac.compare_digest(token.encode(), self.token.encode()) and number.isdecimal()):
                caller.close()
                return
            with self._lock:
                if self._is_closed:
                    caller.close()
                    return
                before = self._open.pop(int(number), None)
                self._open[int(number)] = caller
            if before is not None:
                _end(before)
            caller.sendall(WELCOME)
        except OSError:  # it went away
            caller.close()

    def hang_up(self, number: int) -> None:
        """Let the worker of this number go, if there is one."""
        with self._lock:
            line = self._open.pop(number, None)
        if line is not None:
            _end(line)

    def close(self) -> list[int]:
        """Let all workers go; return the numbers of those that are there. Nobody is let in any more."""
        with self._lock:
            self._is_closed = True
            lines, self._open = self._open, {}
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        there = [number for number, line in lines.items() if _is_open(line)]
        for line in lines.values():
            _end(line)
        return there


def call(address: tuple[str, int], token: str, number: int) -> socket.socket:
    """Return a task's line to the driver; OSError if the driver is not there, or does not want it."""
    line = socket.create_connection(address, GREETING_S)
    try:
        line.sendall(f"{token} {number}\n".encode())
        if line.recv(1) != WELCOME:
            raise ConnectionRefusedError("the driver has hung up")
        line.settimeout(None)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except OSError:
        line.close()
        raise
    return line


def await_end(line: socket.socket) -> None:
    """Wait until the driver has hung up, or is gone."""
    with suppress(OSError):
        line.recv(1)


def _read_line(caller: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\n") and len(data) < MOST_BYTES:
        if not (more := caller.recv(MOST_BYTES)):
            break
        data += more
    return data.decode("ascii", "replace").strip()


def _is_open(line: socket.socket) -> bool:
    """Tell whether a task is at the other end."""
    line.setblocking(False)
    try:
        return bool(line.recv(1))
    except BlockingIOError:  # it has nothing to say
        return True
    except OSError:
        return False


def _end(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()

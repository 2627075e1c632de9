"""A connection to the host: calls and their answers, and what the plugin tells and asks in between."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau.connect.errors import ConnectError, GoneError, RetriableError
from moldau.connect.jvm.codec import INT, Packer, Unpacker

CHUNK = 1 << 18
STEP_S = 0.2


class JavaError(ConnectError):
    """What a Java plugin has thrown; `java_trace` is Java's own."""

    def __init__(self, name: str, message: str, trace: str) -> None:
        super().__init__(message)
        self.java_name, self.java_trace = name, trace


class RetriableJavaError(JavaError, RetriableError):
    """A RetriableException of a Java plugin."""


class HostGone(GoneError):
    """The JVM has ended, or the connection to it."""


class TookTooLong(GoneError):
    """A call that has not returned in time."""


def java_error(row: Any) -> JavaError:
    name, message, is_retriable, trace = row
    return (RetriableJavaError if is_retriable else JavaError)(name, message, trace)


Told = Callable[..., Any]
PENDING = object()


class Link:
    """One connection; it belongs to one thread. `told` has a function for each thing that the plugin may tell or ask;
    `why_gone` explains an end of the connection.
    """

    def __init__(self, channel: socket.socket, why_gone: Callable[[], str], told: Mapping[str, Told]) -> None:
        self._channel, self._why_gone, self._told = channel, why_gone, told
        self._packer, self._unpacker = Packer(), Unpacker()
        self._data = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self.is_busy = False  # a call was sent whose result was not read

    def call(self, *words: Any, timeout_s: float | None = None) -> Any:
        """Return what the plugin returns; JavaError where it throws, TookTooLong after `timeout_s`."""
        self.begin(*words)
        found = self.wait(timeout_s)
        if found is PENDING:
            raise TookTooLong(f"The plugin has not returned from {words[0]} within {timeout_s:g} s.")
        return found

    def begin(self, *words: Any) -> None:
        """Send a call; `wait` has its result."""
        self._send("C", words)
        self.is_busy = True

    def note(self, *words: Any) -> None:
        """Tell the plugin something that nobody waits for; it may be in the midst of a call."""
        self._send("N", words)

    def wait(self, timeout_s: float | None) -> Any:
        """Return the result of the call that was begun, or PENDING if there is none yet; see to what is told."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            frame = self._frame(deadline)
            if frame is None:
                return PENDING
            kind, value = self._unpacker.frame(frame)
            match kind:
                case "R":
                    self.is_busy = False
                    return value
                case "E":
                    self.is_busy = False
                    raise java_error(value)
                case "T":
                    self._told[value[0]](*value[1:])
                case _:
                    self._answer(*value)

    def _answer(self, number: int, op: str, given: Any) -> None:
        try:
            answer = self._told[op](given)
        except ConnectError as error:
            self._send("F", (number, str(error)))
            return
        self._send("A", (number, answer))

    def _frame(self, deadline: float | None) -> bytes | bytearray | None:
        """Return the next frame without its length; None if there is none by then."""
        while True:
            if len(self._data) >= 4:
                end = 4 + INT.unpack_from(self._data, 0)[0]
                if len(self._data) >= end:
                    frame = self._data[4:end]
                    del self._data[:end]
                    return frame
            if not self._readable(deadline):
                return None
            try:
                more = self._channel.recv(CHUNK)
            except OSError:
                more = b""
            if not more:
                raise HostGone(self._why_gone())
            self._data += more

    def _readable(self, deadline: float | None) -> bool:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return bool(self._selector.select(left))

    def _send(self, kind: str, value: Any) -> None:
        frame = self._packer.frame(kind, value)
        try:
            self._channel.sendall(frame)
        except OSError:
            raise HostGone(self._why_gone()) from None

    def close(self) -> None:
        """End what the connection was for: the host stops it, if it still runs."""
        self._selector.close()
        self._channel.close()

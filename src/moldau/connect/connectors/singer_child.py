"""A program whose lines are read and written without threads: a tap, a target, or a runner of ours that speaks as one.

Whatever waits has an end: reading returns after a time-out, a line has a longest length, and writing to a program that
takes nothing fails. A program is killed together with what it started.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from moldau.connect.errors import ConnectError

Line = TypeVar("Line", bytes, bytearray)
log = logging.getLogger(__name__)
CHUNK = 1 << 16
LAST_WORDS = 10  # lines of the program's errors that a failure shows
WORD = 500  # characters of such a line
END_S = 5.0  # between asking a program to end and killing it


class Child:
    """The program. One that `wants_input` is written to, and its lines are left out."""

    def __init__(
        self,
        command: Sequence[str],
        longest_line: int,
        *,
        wants_input: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self._longest, self._is_read = os.path.basename(command[0]), longest_line, not wants_input
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if wants_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            raise ConnectError(f"{command[0]} cannot be started: {error.strerror or error}.") from error
        assert self._process.stdout is not None and self._process.stderr is not None
        self._selector = selectors.DefaultSelector()
        self._buffers = {self._process.stdout.fileno(): bytearray(), self._process.stderr.fileno(): bytearray()}
        self._out, self._err = self._buffers
        for place in self._buffers:
            os.set_blocking(place, False)
            self._selector.register(place, selectors.EVENT_READ)
        self._words: deque[str] = deque(maxlen=LAST_WORDS)
        self._lines: list[bytes] = []
        self.torn = b""  # a last line that does not end

    @property
    def last_words(self) -> str:
        """What the program wrote last to its error output."""
        return "\n".join(self._words)

    def read(self, timeout_s: float) -> list[bytes] | None:
        """Return the lines that have come, after waiting a little for the first; None after the last of all."""
        end = time.monotonic() + timeout_s
        while not self._lines and self._is_open(self._out):
            left = end - time.monotonic()
            if left <= 0 or not self._serve(left):
                break
        lines, self._lines = self._lines, []
        return lines if lines or self._is_open(self._out) else None

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of it; ConnectError if the program ends, or takes nothing for so long."""
        assert self._process.stdin is not None
        place, view = self._process.stdin.fileno(), memoryview(data)
        os.set_blocking(place, False)
        self._selector.register(place, selectors.EVENT_WRITE)
        try:
            while view:
                if not self._serve(timeout_s):
                    raise ConnectError(f"{self.name} has read nothing for {timeout_s:g} seconds.")
                with suppress(BlockingIOError):
                    view = view[os.write(place, view) :]
        except BrokenPipeError:
            raise ConnectError(self.failure(self.finish(timeout_s))) from None
        finally:
            self._selector.unregister(place)

    def _serve(self, timeout_s: float) -> bool:
        """Wait for the program and take what it writes; return False if nothing has happened."""
        events = self._selector.select(timeout_s)
        for key, mask in events:
            if mask & selectors.EVENT_READ:
                self._take(key.fd)
        return bool(events)

    def _take(self, place: int) -> None:
        buffer = self._buffers[place]
        try:
            chunk = os.read(place, CHUNK)
        except BlockingIOError:
            return
        buffer += chunk
        if not chunk:
            self._selector.unregister(place)
        if b"\n" in chunk or not chunk:
            *lines, rest = buffer.split(b"\n")
            if not chunk and place == self._out:
                self.torn = bytes(rest)
            buffer[:] = rest if chunk else b""
            if place == self._err:
                self._hear(lines)
            elif self._is_read:
                self._lines += [self._checked(bytes(line)) for line in lines if line.strip()]
        if place == self._out:
            self._checked(buffer)
        elif len(buffer) > self._longest:
            buffer.clear()

    def _checked(self, line: Line) -> Line:
        if len(line) > self._longest:
            raise ConnectError(f"{self.name} wrote a line of more than {self._longest} bytes.")
        return line

    def _hear(self, lines: Sequence[bytes | bytearray]) -> None:
        for line in lines:
            text = line[:WORD].decode("utf-8", "replace").rstrip()
            if text:
                self._words.append(text)
                log.info("%s: %s", self.name, text)

    def _is_open(self, place: int) -> bool:
        return place in self._selector.get_map()

    def finish(self, timeout_s: float) -> int:
        """Let the program end, taking what it still writes; return its code. It is killed if it does not end."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        end = time.monotonic() + timeout_s
        while self._selector.get_map() and (left := end - time.monotonic()) > 0:
            self._serve(left)
        try:
            code = self._process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ConnectError(f"{self.name} did not end within {timeout_s:g} seconds.") from None
        finally:
            self.kill()
        return code

    def failure(self, code: int) -> str:
        """Say how the program failed, with its last words."""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        said = f": {self.last_words}" if self._words else "."
        return f"{self.name} {how}{said}"

    def kill(self) -> None:
        """End the program and what it started, and let go of it."""
        if self._process.returncode is None:  # nobody has waited for it, so the number of its group is still its own
            self._signal(signal.SIGTERM)
            end = time.monotonic() + END_S
            while self._selector.get_map() and (left := end - time.monotonic()) > 0:
                for key, _ in self._selector.select(left):
                    if not os.read(key.fd, CHUNK):
                        self._selector.unregister(key.fd)
            self._signal(signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._selector.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

"""`moldau up`: the parts of the platform as processes of their own, started in order, looked after, stopped in order.

A part is a command of `moldau` that prints `ready ADDRESS` when it serves, and ends when its stdin does: so all parts
go with this process, however it ends. The broker comes first, because the others talk to it; what crashes is started
again on its port, and the others wait for it as they would for any Kafka.
"""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

HOST = "127.0.0.1"
START_S = 30.0
STOP_S = 20.0
LOOK_EVERY_S = 0.2
QUICK_CRASH_S = 10.0  # a part that lived longer than this starts again at once
CRASHES = 5  # quick ones in a row, before the platform gives up
PAUSE_S = 0.5  # before a second start in a row; each further one waits twice as long


class PlatformError(Exception):
    """A part cannot run: one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What `moldau up` was asked for."""

    data_dir: str | None = None
    ephemeral: bool = False
    port_offset: int = 0
    only: tuple[str, ...] = ()
    bootstrap_servers: str | None = None
    overrides: tuple[str, ...] = ()

    def brokers(self) -> str:
        return self.bootstrap_servers or self.address("broker")

    def address(self, name: str) -> str:
        return f"{HOST}:{PARTS[name].port + self.port_offset}"


class Part(NamedTuple):
    """A row of the platform: what it is, where people know it, and its options besides where to listen."""

    what: str
    port: int
    arguments: Callable[[Options], list[str]]


def _broker(options: Options) -> list[str]:
    kept = ["--data-dir", options.data_dir] if options.data_dir else []
    return [*kept, *(text for override in options.overrides for text in ("--set", override))]


def _registry(options: Options) -> list[str]:
    return ["--bootstrap-servers", options.brokers()]


def _rest(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry-url", f"http://{options.address('registry')}"]


PARTS = {
    "broker": Part("any Kafka client", 9092, _broker),
    "registry": Part("Schema Registry", 8081, _registry),
    "rest": Part("REST Proxy", 8082, _rest),
}


def chosen(options: Options) -> list[str]:
    """The parts to start, in order; PlatformError for one that is not there."""
    for name in options.only:
        if name not in PARTS:
            raise PlatformError(f"There is no part '{name}'. There are: {', '.join(PARTS)}.")
    if options.ephemeral and options.data_dir:
        raise PlatformError("--ephemeral has a directory of its own; leave out --data-dir.")
    named = [name for name in PARTS if name in (options.only or PARTS)]
    return [name for name in named if name != "broker" or not options.bootstrap_servers]


@dataclass(slots=True)
class Running:
    """A part that was started, and how it fared so far."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes]
    since: float
    address: str = ""
    crashes: int = 0
    again_at: float | None = None

    def start_again(self) -> None:
        self.process = _spawn(self.command)
        self.since, self.again_at = time.monotonic(), None


def _spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Ctrl-C is for the parent alone, which stops the parts in their order."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


class Platform:
    """All parts. `tell` gets a line for whatever happens after the start."""

    def __init__(self, options: Options, tell: Callable[[str], None]) -> None:
        self.options = options
        self.tell = tell
        self.parts: list[Running] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[Platform]:
        """Every part serves, for the length of a `with`."""
        names = chosen(self.options)
        with contextlib.ExitStack() as open_parts:
            if self.options.ephemeral:  # the directory is ours: a broker that crashed finds its data
                home = open_parts.enter_context(
                    tempfile.TemporaryDirectory(prefix="moldau-", ignore_cleanup_errors=True)
                )
                self.options = replace(self.options, data_dir=home)
            open_parts.callback(self.stop)
            for group in (names[:1], names[1:]) if "broker" in names else (names,):
                started = [self.start(name) for name in group]
                for part in started:
                    self.await_ready(part)
            yield self

    def start(self, name: str) -> Running:
        where = ["--listen", self.options.address(name), "--stop-with-stdin"]
        command = [sys.executable, "-m", "moldau", name, *where, *PARTS[name].arguments(self.options)]
        part = Running(name, command, _spawn(command), time.monotonic())
        self.parts.append(part)
        return part

    def await_ready(self, part: Running) -> None:
        assert part.process.stdout is not None
        readable, _, _ = select.select([part.process.stdout], [], [], START_S)
        line = part.process.stdout.readline().decode() if readable else ""
        if not line.startswith("ready "):
            raise PlatformError(
                f"The {part.name} did not start on {self.options.address(part.name)}; its own words stand above. "
                "If a port is taken, --port-offset moves all of them."
            )
        part.address = line.split()[1]

    def look_after(self, until: Callable[[], bool]) -> None:
        """Start again what has crashed; PlatformError for what does not stay up."""
        while not until():
            for part in self.parts:
                self.look_at(part, time.monotonic())
            time.sleep(LOOK_EVERY_S)

    def look_at(self, part: Running, now: float) -> None:
        if part.again_at is not None:
            if now >= part.again_at:
                part.start_again()
                self.await_ready(part)
                self.tell(f"The {part.name} serves again.")
        elif (code := part.process.poll()) is not None:
            part.crashes = part.crashes + 1 if now - part.since < QUICK_CRASH_S else 1
            if part.crashes > CRASHES:
                raise PlatformError(f"The {part.name} ended {part.crashes} times in a row, the last time with {code}.")
            part.again_at = now + (PAUSE_S * 2 ** (part.crashes - 2) if part.crashes > 1 else 0)
            self.tell(f"The {part.name} ended ({_how(code)}); it is started again.")

    def stop(self) -> None:
        """The last that was started goes first: nobody misses what it needs."""
        for part in reversed(self.parts):
            part.process.terminate()
            try:
                part.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                part.process.kill()
                part.process.wait()
            for pipe in (part.process.stdin, part.process.stdout):
                assert pipe is not None
                pipe.close()
        self.parts.clear()


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

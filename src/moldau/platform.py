"""`moldau up`: the parts of the platform as processes of their own, started in order, looked after, stopped in order.

A part is a command of `moldau` that prints `ready ADDRESS` when it serves, and ends when its stdin does: so all parts
go with this process, however it ends. The broker comes first, because the others talk to it; what crashes is started
again on its port, and the others wait for it as they would for any Kafka. The console takes longer to start than all
others together, so nobody waits for it: it comes up while the platform is in use. What a part writes to stderr is a
file of its own in the data directory.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from moldau.cli import ports
from moldau.extras import command, is_installed

HOST = "127.0.0.1"
START_S = 30.0
STOP_S = 20.0
LOOK_EVERY_S = 0.2
QUICK_CRASH_S = 10.0  # a part that lived longer than this starts again at once
CRASHES = 5  # quick ones in a row, before the platform gives up
DATA_DIR = "moldau-data"
LOGS = ".moldau/logs"  # in the data directory; no name of a partition
STATE = ".moldau/streams"
NOWHERE = "-"  # the address of a part without a port
LOG_BYTES = 32 << 20  # a file of logs; what was before is kept once
LOG_LINES = 20  # of a part that does not start
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
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of parts, by name
    demo: tuple[str, ...] = ()  # which parts of the demonstration
    demo_rate: float = 20.0  # events a second

    @property
    def home(self) -> Path:
        """Where data and logs are; absolute."""
        return Path(self.data_dir or DATA_DIR).absolute()

    def set(self, name: str) -> list[str]:
        """The settings of a part as its command takes them; those of the command line win."""
        more = self.overrides if name == "broker" else ()
        return [text for setting in (*self.settings.get(name, ()), *more) for text in ("--set", setting)]

    def brokers(self) -> str:
        return self.bootstrap_servers or self.address("broker")

    def address(self, name: str) -> str:
        port = EVERY[name].port
        return f"{HOST}:{port + self.port_offset}" if port else NOWHERE


class Part(NamedTuple):
    """A row of the platform: what it is, where people know it, and its options besides where to listen.

    The platform is ready without one that is not awaited, and goes on without it. `needs` is what must be installed.
    """

    what: str
    port: int  # 0: it does something by itself, and nobody connects to it
    arguments: Callable[[Options], list[str]]
    awaited: bool = True
    needs: str | None = None
    program: str = "moldau"

    @property
    def is_installed(self) -> bool:
        return self.needs is None or is_installed(self.needs)


def _broker(options: Options) -> list[str]:
    return ["--data-dir", str(options.home)]


def _registry(options: Options) -> list[str]:
    return ["--bootstrap-servers", options.brokers()]


def _rest(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry-url", f"http://{options.address('registry')}"]


def _console(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry", f"http://{options.address('registry')}"]


PARTS = {
    "broker": Part("any Kafka client", 9092, _broker),
    "registry": Part("Schema Registry", 8081, _registry),
    "rest": Part("REST Proxy", 8082, _rest),
    "console": Part("a browser", 9021, _console, awaited=False, needs="nicegui"),
}


def _shop(options: Options) -> list[str]:
    return [*_console(options), "--rate", str(options.demo_rate)]


def _pipeline(options: Options) -> list[str]:
    return [*_console(options), "--state-dir", str(options.home / STATE)]


DEMO = {
    "shop": Part("orders, payments, clicks", 0, _shop, awaited=False, program="moldau.demo"),
    "pipeline": Part("two streams on Spark", 0, _pipeline, awaited=False, program="moldau.demo"),
}
EVERY = {**PARTS, **DEMO}


def chosen(options: Options) -> list[str]:
    """The parts to start, in order; PlatformError for one that is not there."""
    for name in options.only:
        if name not in PARTS:
            raise PlatformError(f"There is no part '{name}'. There are: {', '.join(PARTS)}.")
        if not PARTS[name].is_installed:
            raise PlatformError(f"The {name} is not installed: {command(name)}.")
    if options.ephemeral and options.data_dir:
        raise PlatformError("--ephemeral has a directory of its own; leave out --data-dir.")
    named = [name for name, part in PARTS.items() if name in (options.only or PARTS) and part.is_installed]
    if options.demo and (options.bootstrap_servers or not {"broker", "registry"} <= set(named)):
        raise PlatformError("The demo has a broker and registry of its own: leave out --bootstrap-servers and --only.")
    return [*(name for name in named if name != "broker" or not options.bootstrap_servers), *options.demo]


@dataclass(slots=True)
class Running:
    """A part that was started, and how it fared so far."""

    name: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes]
    since: float
    address: str
    is_ready: bool = False
    crashes: int = 0
    again_at: float | None = None

    def start_again(self) -> None:
        self.process = _spawn(self.command, self.log)
        self.since, self.again_at, self.is_ready = time.monotonic(), None, False


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Ctrl-C is for the parent alone, which stops the parts in their order."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )


class Platform:
    """All parts. `tell` gets a line for whatever happens after the start, `changed` is called when processes did."""

    def __init__(
        self, options: Options, tell: Callable[[str], None], changed: Callable[[Platform], None] = lambda _: None
    ) -> None:
        self.options = options
        self.tell = tell
        self.changed = changed
        self.parts: list[Running] = []

    @property
    def logs(self) -> Path:
        return self.options.home / LOGS

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
            self.make_room(names)
            open_parts.callback(self.stop)
            awaited = [name for name in names if EVERY[name].awaited]
            for group in (awaited[:1], awaited[1:]) if "broker" in awaited else (awaited,):
                started = [self.start(name) for name in group]
                for part in started:
                    self.await_ready(part, START_S)
            for name in names:
                if not EVERY[name].awaited:
                    self.start(name)
            self.changed(self)
            yield self

    def make_room(self, names: Sequence[str]) -> None:
        """A directory for logs, and ports that are free; PlatformError says who has them."""
        for name in names:
            if EVERY[name].port:
                check_port(name, self.options)
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlatformError(
                f"{self.logs} cannot be made: {error.strerror}. --data-dir names another place, --ephemeral needs none."
            ) from None

    def start(self, name: str) -> Running:
        part = EVERY[name]
        where = ["--listen", self.options.address(name)] if part.port else []
        more = [*part.arguments(self.options), *self.options.set(name)]
        command = [sys.executable, "-m", part.program, name, "--stop-with-stdin", *where, *more]
        log = self.logs / f"{name}.log"
        keep_small(log)
        address = f"http://{self.options.address(name)}" if part.port else NOWHERE
        running = Running(name, command, log, _spawn(command, log), time.monotonic(), address)
        self.parts.append(running)
        return running

    def await_ready(self, part: Running, patience_s: float) -> None:
        assert part.process.stdout is not None
        readable, _, _ = select.select([part.process.stdout], [], [], patience_s)
        line = part.process.stdout.readline().decode() if readable else ""
        if not line.startswith("ready "):
            where = self.options.address(part.name)
            raise PlatformError(f"The {part.name} did not start on {where}. Its own words:\n{last_lines(part.log)}")
        part.address, part.is_ready = line.split()[1], True

    def look_after(self, until: Callable[[], bool]) -> None:
        """Start again what has crashed; PlatformError for what does not stay up and is needed."""
        while not until():
            for part in self.parts:
                self.look_at(part, time.monotonic())
                keep_small(part.log)
            time.sleep(LOOK_EVERY_S)

    def look_at(self, part: Running, now: float) -> None:
        if part.again_at is not None:
            if now >= part.again_at:
                part.start_again()
                if EVERY[part.name].awaited:
                    self.await_ready(part, START_S)
                    self.tell(f"The {part.name} serves again.")
                self.changed(self)
        elif (code := part.process.poll()) is not None:
            part.crashes = part.crashes + 1 if now - part.since < QUICK_CRASH_S else 1
            if part.crashes > CRASHES:
                self.give_up(part, code)
            else:
                part.again_at = now + (PAUSE_S * 2 ** (part.crashes - 2) if part.crashes > 1 else 0)
                self.tell(f"The {part.name} ended ({_how(code)}); it is started again.")
        elif not part.is_ready:
            self.note_ready(part)

    def note_ready(self, part: Running) -> None:
        """See whether a part that nobody awaits has come up."""
        assert part.process.stdout is not None
        if select.select([part.process.stdout], [], [], 0)[0]:
            with contextlib.suppress(PlatformError):  # it has ended, and is looked at next time
                self.await_ready(part, 0)
                where = f"serves at {part.address}" if part.address != NOWHERE else "runs"
                self.tell(f"The {part.name} {where}.")

    def give_up(self, part: Running, code: int) -> None:
        """A part does not stay up: PlatformError, or a sentence if the others can do without it."""
        words = (
            f"The {part.name} ended {part.crashes} times in a row, the last time with {code}:\n{last_lines(part.log)}"
        )
        if EVERY[part.name].awaited:
            raise PlatformError(words)
        part.again_at = float("inf")
        self.tell(f"{words}\nThe rest goes on without it.")

    def stop(self) -> None:
        """The last that was started goes first: nobody misses what it needs."""
        for part in reversed(self.parts):
            part.process.terminate()
            try:
                part.process.wait(STOP_S)
                left = part.name in DEMO
            except subprocess.TimeoutExpired:
                left = True
            if left:
                end_group(part.process)
            for pipe in (part.process.stdin, part.process.stdout):
                assert pipe is not None
                pipe.close()
        self.parts.clear()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """The process and all that it started, now: Java has been seen to outlive the Python that started it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def check_port(name: str, options: Options) -> None:
    """PlatformError if somebody else has the port: who, and how to move."""
    host, _, port = options.address(name).rpartition(":")
    if ports.is_free(host, int(port)):
        return
    owner = ports.owner(int(port))
    offset = options.port_offset + 10_000 if options.port_offset < 30_000 else 0
    raise PlatformError(
        f"Port {port}, for the {name}, is taken by {owner or 'a process that is not yours'}. "
        f"Stop that, or move all ports: --port-offset {offset}."
    )


def keep_small(log: Path) -> None:
    """What a file of logs had is kept once. Its part goes on writing at the end of what is then an empty file."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


def last_lines(log: Path) -> str:
    """The end of what a part wrote."""
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
    return ""


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

"""`moldau up`: runs the parts of the platform as processes, starts and stops them in order, and restarts them.

A part is a command of `moldau` that prints `ready ADDRESS` when it accepts connections, and ends when its stdin does:
so all parts end with this process, however it ends. The broker starts first, because the others connect to it. A part
that crashes is restarted on its port, and the others wait for it as for any Kafka. The console takes longer to start
than all others together, so nobody waits for it. The stderr of each part goes to its own file in the data directory.
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

from moldau.broker.rim.clusters import Ports, format_directories, node_settings
from moldau.cli import ports
from moldau.extras import command, is_installed

HOST = "127.0.0.1"
START_S = 30.0
STOP_S = 20.0
LOOK_EVERY_S = 0.2
QUICK_CRASH_S = 10.0  # a part that ran longer than this is restarted at once
CRASHES = 5  # quick crashes in a row before the platform gives up
DATA_DIR = "moldau-data"
LOGS = ".moldau/logs"  # in the data directory; not the name of a partition
STATE = ".moldau/streams"
NODES = "nodes"  # further brokers, in the data directory of the first
CONTROLLERS = 100  # added to a broker's port: where its controller listens
MOST_BROKERS = 9
NOWHERE = "-"  # the address of a part without a port
LOG_BYTES = 32 << 20  # the largest log file; the one before it is kept
LOG_LINES = 20  # shown of a part that does not start
PAUSE_S = 0.5  # before the second restart in a row; doubled before each further one


class PlatformError(Exception):
    """An error of a part that cannot run, in one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `moldau up`."""

    data_dir: str | None = None
    ephemeral: bool = False
    port_offset: int = 0
    only: tuple[str, ...] = ()
    bootstrap_servers: str | None = None
    overrides: tuple[str, ...] = ()
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the parts, by name
    demo: tuple[str, ...] = ()  # the parts of the demo
    demo_rate: float = 20.0  # events a second
    broker_count: int = 1

    @property
    def home(self) -> Path:
        """Return the absolute path of data and logs."""
        return Path(self.data_dir or DATA_DIR).absolute()

    def set(self, name: str) -> list[str]:
        """Return the settings of a part for its command; those of the command line come last and win."""
        kind = name.partition("-")[0]
        more = [*self.settings.get(kind, ()), *(self.overrides if kind == "broker" else ())]
        if kind == "broker" and self.broker_count > 1:
            more = [*(f"{key}={value}" for key, value in node_settings(number_of(name), self.ports()).items()), *more]
        return [text for setting in more for text in ("--set", setting)]

    def brokers(self) -> str:
        return self.bootstrap_servers or ",".join(self.address(name) for name in self.broker_names())

    def broker_names(self) -> list[str]:
        return ["broker", *(f"broker-{number}" for number in range(2, self.broker_count + 1))]

    def broker_home(self, name: str) -> Path:
        """Return the data directory of a broker; the first one's is that of a broker that is alone."""
        return self.home if name == "broker" else self.home / NODES / str(number_of(name))

    def ports(self) -> list[Ports]:
        first = PARTS["broker"].port + self.port_offset
        return [Ports(first + one, first + one + CONTROLLERS) for one in range(self.broker_count)]

    def address(self, name: str) -> str:
        port = part_of(name).port
        return f"{HOST}:{port + number_of(name) - 1 + self.port_offset}" if port else NOWHERE


class Part(NamedTuple):
    """A part of the platform: its purpose, its usual port, and its options besides the address.

    The platform is ready without a part that is not awaited, and can run without it. `needs` must be installed.
    """

    what: str
    port: int  # 0: nobody connects to it
    arguments: Callable[[Options], list[str]]
    awaited: bool = True
    needs: str | None = None
    program: str = "moldau"

    @property
    def is_installed(self) -> bool:
        return self.needs is None or is_installed(self.needs)


def part_of(name: str) -> Part:
    """Return the part of a name; `broker-2` is a broker."""
    return EVERY[name.partition("-")[0]]


def number_of(name: str) -> int:
    return int(name.partition("-")[2] or 1)


def _registry(options: Options) -> list[str]:
    return ["--bootstrap-servers", options.brokers()]


def _console(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry", f"http://{options.address('registry')}"]


def _rest(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry-url", f"http://{options.address('registry')}"]


PARTS = {
    "broker": Part("any Kafka client", 9092, lambda options: []),
    "registry": Part("Schema Registry", 8081, _registry),
    "rest": Part("REST Proxy", 8082, _rest),
    "console": Part("a browser", 9021, _console, awaited=False, needs="nicegui"),
}
DEMO = {
    "shop": Part(
        "orders, payments, clicks", 0, lambda options: [*_console(options), "--rate", str(options.demo_rate)],
        awaited=False, program="moldau.demo",
    ),
    "pipeline": Part(
        "two streams on Spark", 0, lambda options: [*_console(options), "--state-dir", str(options.home / STATE)],
        awaited=False, program="moldau.demo",
    ),
}  # fmt: skip
EVERY = {**PARTS, **DEMO}


def chosen(options: Options) -> list[str]:
    """Return the parts to start, in order; PlatformError for an unknown one."""
    for name in options.only:
        if name not in PARTS:
            raise PlatformError(f"There is no part '{name}'. The parts are: {', '.join(PARTS)}.")
        if not PARTS[name].is_installed:
            raise PlatformError(f"The {name} is not installed: {command(name)}.")
    if options.ephemeral and options.data_dir:
        raise PlatformError("--ephemeral uses its own directory: omit --data-dir.")
    named = [name for name, part in PARTS.items() if name in (options.only or PARTS) and part.is_installed]
    if options.demo and (options.bootstrap_servers or not {"broker", "registry"} <= set(named)):
        raise PlatformError("The demo has its own broker and registry: omit --bootstrap-servers and --only.")
    if not 1 <= options.broker_count <= MOST_BROKERS:
        raise PlatformError(f"--brokers is {options.broker_count}: one machine runs 1 to {MOST_BROKERS} brokers.")
    if options.broker_count > 1 and "broker" not in named:
        raise PlatformError("--brokers needs the broker among the parts of --only.")
    if "broker" in named and not options.bootstrap_servers:
        named[:1] = options.broker_names()
    else:
        named = [name for name in named if name != "broker"]
    return [*named, *options.demo]


@dataclass(slots=True)
class Running:
    """A started part and its state."""

    name: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes]
    since: float
    address: str
    is_ready: bool = False
    crashes: int = 0
    again_at: float | None = None

    def restart(self) -> None:
        self.process = _spawn(self.command, self.log)
        self.since, self.again_at, self.is_ready = time.monotonic(), None, False


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process in its own session: Ctrl-C reaches only the parent, which stops the parts in order."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )


class Platform:
    """All parts. `tell` gets a line for every event after the start, `changed` is called when processes change."""

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
        """Run all parts during a `with`."""
        names = chosen(self.options)
        with contextlib.ExitStack() as open_parts:
            if self.options.ephemeral:  # our own directory: a broker that crashed finds its data again
                home = open_parts.enter_context(
                    tempfile.TemporaryDirectory(prefix="moldau-", ignore_cleanup_errors=True)
                )
                self.options = replace(self.options, data_dir=home)
            self.prepare(names)
            open_parts.callback(self.stop)
            awaited = [name for name in names if part_of(name).awaited]
            brokers = [name for name in awaited if name.startswith("broker")]
            for group in (brokers, awaited[len(brokers) :]):
                started = [self.start(name) for name in group]
                for part in started:
                    self.await_ready(part, START_S)
            for name in names:
                if not part_of(name).awaited:
                    self.start(name)
            self.changed(self)
            yield self

    def prepare(self, names: Sequence[str]) -> None:
        """Create the directory of logs and check that the ports are free; PlatformError says who uses them."""
        for name in names:
            if part_of(name).port:
                check_port(name, self.options)
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            if self.options.broker_count > 1:
                format_directories([self.options.broker_home(name) for name in self.options.broker_names()])
        except OSError as error:
            raise PlatformError(
                f"{self.logs} cannot be created: {error.strerror}. Use another --data-dir, or --ephemeral."
            ) from None

    def start(self, name: str) -> Running:
        part, kind = part_of(name), name.partition("-")[0]
        where = ["--listen", self.options.address(name)] if part.port else []
        where += ["--data-dir", str(self.options.broker_home(name))] if kind == "broker" else []
        more = [*part.arguments(self.options), *self.options.set(name)]
        command = [sys.executable, "-m", part.program, kind, "--stop-with-stdin", *where, *more]
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
            raise PlatformError(f"The {part.name} did not start on {where}. Its log ends:\n{last_lines(part.log)}")
        part.address, part.is_ready = line.split()[1], True

    def look_after(self, until: Callable[[], bool]) -> None:
        """Restart crashed parts; PlatformError for a necessary part that does not stay up."""
        while not until():
            for part in self.parts:
                self.look_at(part, time.monotonic())
                keep_small(part.log)
            time.sleep(LOOK_EVERY_S)

    def look_at(self, part: Running, now: float) -> None:
        if part.again_at is not None:
            if now >= part.again_at:
                part.restart()
                if part_of(part.name).awaited:
                    self.await_ready(part, START_S)
                    self.tell(f"The {part.name} runs again.")
                self.changed(self)
        elif (code := part.process.poll()) is not None:
            part.crashes = part.crashes + 1 if now - part.since < QUICK_CRASH_S else 1
            if part.crashes > CRASHES:
                self.give_up(part, code)
            else:
                part.again_at = now + (PAUSE_S * 2 ** (part.crashes - 2) if part.crashes > 1 else 0)
                self.tell(f"The {part.name} ended ({_how(code)}); it is restarted.")
        elif not part.is_ready:
            self.note_ready(part)

    def note_ready(self, part: Running) -> None:
        """Check whether a part that nobody awaits is ready."""
        assert part.process.stdout is not None
        if select.select([part.process.stdout], [], [], 0)[0]:
            with contextlib.suppress(PlatformError):  # it has ended; the next round notices
                self.await_ready(part, 0)
                where = f"is ready at {part.address}" if part.address != NOWHERE else "runs"
                self.tell(f"The {part.name} {where}.")

    def give_up(self, part: Running, code: int) -> None:
        """Give up a part: PlatformError, or a sentence if the others can run without it."""
        words = (
            f"The {part.name} ended {part.crashes} times in a row, the last time with {code}:\n{last_lines(part.log)}"
        )
        if part_of(part.name).awaited:
            raise PlatformError(words)
        part.again_at = float("inf")
        self.tell(f"{words}\nThe others run without it.")

    def stop(self) -> None:
        """Stop the parts in reverse order, so that each still has what it needs."""
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
    """Kill the process and all that it started: Java may outlive the Python that started it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def check_port(name: str, options: Options) -> None:
    """Raise PlatformError if the port is taken, with the process that has it and a way out."""
    host, _, port = options.address(name).rpartition(":")
    if ports.is_free(host, int(port)):
        return
    owner = ports.owner(int(port))
    offset = options.port_offset + 10_000 if options.port_offset < 30_000 else 0
    raise PlatformError(
        f"Port {port}, for the {name}, is taken by {owner or 'a process that is not yours'}. "
        f"Stop it, or move all ports with --port-offset {offset}."
    )


def keep_small(log: Path) -> None:
    """Move a large log to one backup file. Its part continues to write to the file, which is then empty."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


def last_lines(log: Path) -> str:
    """Return the last lines of a log."""
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
    return ""


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

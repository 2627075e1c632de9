"""`moldau up`: runs the parts of the platform as processes, starts and stops them in order, and restarts them.

A part is a command of `moldau` that prints `ready ADDRESS` when it accepts connections, and ends when its stdin does:
so all parts end with this process, however it ends. Loading code takes most of the time of a start. So what several
parts need is loaded once, here, and each part is forked from this process and loads the rest itself, all at the same
time; those that connect to the brokers go on when all brokers are ready, or a topic could get too few replicas. A part
that crashes is started afresh on its port, and the others wait for it as for any Kafka. The console takes longer to
start than all others together, so nobody waits for it. The stderr of each part goes to its own file in the data
directory.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from moldau.broker.rim.clusters import Ports, format_directories, node_settings
from moldau.cli import main, ports
from moldau.cli.processes import Process, load
from moldau.extras import command, is_installed

HOST = "127.0.0.1"
START_S = 120.0  # one that has ended is noticed at once; a busy machine may need long for one that runs
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
ON_USE = ("--start-with-use",)  # a part that listens, and loads its code when somebody connects
PLAIN, SECURED = "PLAINTEXT", "SASL_SSL"  # protocols of brokers
WAITING = "--start-with-stdin"  # a part that loads its code, and connects when it gets a line
NOWHERE = "-"  # the address of a part without a port
LOG_BYTES = 32 << 20  # the largest log file; the one before it is kept
LOG_LINES = 20  # shown of a part that does not start
FORKS = sys.platform == "linux"  # elsewhere libraries of the system may not survive a fork
BROKER_CODE = ("moldau.cli.quick_broker", "moldau.broker.rim.server", "moldau.broker.node", "uvloop")
SERVICE_CODE = (
    "moldau.cli.application",
    "moldau.cli.services",
    "moldau.http",
    "moldau.topicstore",
    "moldau.serdes.schemas",
    "uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
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
    secure: str | None = None  # the folder of `moldau secure init`

    @property
    def home(self) -> Path:
        """Return the absolute path of data and logs."""
        return Path(self.data_dir or DATA_DIR).absolute()

    def set(self, name: str) -> list[str]:
        """Return the settings of a part for its command; those of the command line come last and win."""
        kind = name.partition("-")[0]
        more = [*self.settings.get(kind, ()), *(self.overrides if kind == "broker" else ())]
        if kind == "broker" and self.broker_count > 1:
            more = [*(f"{key}={value}" for key, value in self.node_settings(name).items()), *more]
        return [text for setting in more for text in ("--set", setting)]

    def node_settings(self, name: str) -> dict[str, str]:
        protocol = SECURED if self.secure else PLAIN
        return node_settings(number_of(name), self.ports(), protocol=protocol)

    def listen(self, name: str) -> str:
        """Return where a part is to listen; a broker's protocol stands before it."""
        is_secured_broker = self.secure and name.startswith("broker")
        return f"{SECURED}://{self.address(name)}" if is_secured_broker else self.address(name)

    def url(self, name: str) -> str:
        """Return the URL of a service."""
        return f"{'https' if self.secure else 'http'}://{self.address(name)}"

    def config(self, name: str) -> list[str]:
        """Return the option that names the settings of a part: secrets are in a file, never in a command."""
        kind = name.partition("-")[0]
        return ["--config", str(Path(self.secure) / f"{kind}.properties")] if self.secure else []

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
    verb: tuple[str, ...] = ()  # what follows the part's name on the command line
    java: bool = False  # it may have started Java, which may outlive it

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
    connect = ["--connect", options.url("connect")]
    return [*_demo(options), *connect, "--sql", options.url("sql")]


def _demo(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry", options.url("registry")]


def _rest(options: Options) -> list[str]:
    return [*_registry(options), "--schema-registry-url", options.url("registry")]


def _connect(options: Options) -> list[str]:
    url = options.url("registry")
    return [
        *_registry(options),
        *(text for role in ("key", "value") for text in ("--set", f"{role}.converter.schema.registry.url={url}")),
    ]


def _sql(options: Options) -> list[str]:
    """Without Spark there are no workers: queries run in the server."""
    local = [] if PARTS["worker"].is_installed else ["--set", "ksql.runtime=local"]
    return [*_rest(options), *local]


def _worker(options: Options) -> list[str]:
    return [*_registry(options), "--state-dir", str(options.home / STATE)]


PARTS = {
    "broker": Part("any Kafka client", 9092, lambda options: []),
    "registry": Part("Schema Registry", 8081, _registry),
    "rest": Part("REST Proxy", 8082, _rest),
    "connect": Part("Kafka Connect", 8083, _connect, awaited=False, verb=ON_USE),
    "sql": Part("clients of ksqlDB", 8088, _sql, awaited=False, verb=("server", *ON_USE)),
    "console": Part("a browser", 9021, _console, awaited=False, needs="nicegui"),
    "worker": Part("deployed flows", 0, _worker, awaited=False, needs="pyspark", java=True),
}
DEMO = {
    "shop": Part(
        "orders, payments, clicks", 0, lambda options: [*_demo(options), "--rate", str(options.demo_rate)],
        awaited=False, program="moldau.demo",
    ),
    "pipeline": Part(
        "two deployed applications", 0, _demo, awaited=False, program="moldau.demo",
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
    if options.secure and (options.demo or options.bootstrap_servers):
        raise PlatformError("A secured platform has its own broker and no demo: omit --demo and --bootstrap-servers.")
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
    command: list[str]
    log: Path
    process: Process
    since: float
    address: str
    is_ready: bool = False
    is_idle: bool = False  # it starts with its first use
    crashes: int = 0
    again_at: float | None = None

    def restart(self) -> None:
        """Start it afresh: with what has been installed since, and with nothing of this process."""
        self.process.close()
        self.process = Process(self.command, self.log)
        self.go_on()
        self.since, self.again_at = time.monotonic(), None
        self.is_ready = self.is_idle = False

    def go_on(self) -> None:
        """Let a part connect to the brokers that waits for them."""
        if WAITING in self.command:
            with contextlib.suppress(BrokenPipeError):  # it has ended; whoever awaits it says so
                self.process.stdin.write(b"\n")


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
                home = tempfile.mkdtemp(prefix="moldau-")  # a TemporaryDirectory would also end with each part
                open_parts.callback(shutil.rmtree, home, ignore_errors=True)
                self.options = replace(self.options, data_dir=home)
            self.prepare(names)
            open_parts.callback(self.stop)
            brokers = self.start_all([name for name in names if name.startswith("broker")], BROKER_CODE)
            services = self.start_all([name for name in names[len(brokers) :] if part_of(name).awaited], SERVICE_CODE)
            for part in brokers:
                self.await_ready(part, START_S)
            self.grant()
            for part in services:
                part.go_on()
            for part in services:
                self.await_ready(part, START_S)
            self.start_all([name for name in names if not part_of(name).awaited], SERVICE_CODE)
            self.changed(self)
            yield self

    def grant(self) -> None:
        """Create the users and rules of a secured platform, if its cluster is new."""
        if self.options.secure:
            from moldau.cli.secured_files import grant

            grant(Path(self.options.secure), self.options.brokers())

    def prepare(self, names: Sequence[str]) -> None:
        """Create the directory of logs and check that the ports are free; PlatformError says who uses them."""
        for name in names:
            for what, port in ports_of(name, self.options):
                check_port(what, port, self.options)
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            if self.options.broker_count > 1:
                format_directories([self.options.broker_home(name) for name in self.options.broker_names()])
        except OSError as error:
            raise PlatformError(
                f"{self.logs} cannot be created: {error.strerror}. Use another --data-dir, or --ephemeral."
            ) from None

    def start_all(self, names: Sequence[str], code: Iterable[str]) -> list[Running]:
        """Start parts, with the code that they share if there are several."""
        if FORKS and len(names) > 1:
            load(code)
        return [self.start(name) for name in names]

    def start(self, name: str) -> Running:
        part, kind = part_of(name), name.partition("-")[0]
        where = ["--listen", self.options.listen(name)] if part.port else []
        where += self.options.config(name)
        where += ["--data-dir", str(self.options.broker_home(name))] if kind == "broker" else []
        where += [WAITING] if part.awaited and kind != "broker" else []
        more = [*part.arguments(self.options), *self.options.set(name)]
        words = [kind, *part.verb, "--stop-with-stdin", *where, *more]
        command = [sys.executable, "-m", part.program, *words]
        log = self.logs / f"{name}.log"
        keep_small(log)
        address = self.options.url(name) if part.port else NOWHERE
        run = partial(main, words) if FORKS and part.program == "moldau" else None
        process = Process(command, log, f"moldau {name}", run)
        running = Running(name, command, log, process, time.monotonic(), address)
        self.parts.append(running)
        return running

    def await_ready(self, part: Running, patience_s: float) -> None:
        """Read a line, `ready ADDRESS` or `idle ADDRESS`; PlatformError if there is none in time."""
        readable, _, _ = select.select([part.process.stdout], [], [], patience_s)
        word, _, address = part.process.stdout.readline().decode().rstrip().partition(" ") if readable else ("", "", "")
        if word not in ("ready", "idle"):
            where = self.options.address(part.name)
            raise PlatformError(f"The {part.name} did not start on {where}. Its log ends:\n{last_lines(part.log)}")
        part.address, part.is_ready, part.is_idle = address, word == "ready", word == "idle"

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
                if self.is_needed(part):
                    self.await_ready(part, START_S)
                    self.tell(f"The {part.name} runs again.")
                self.changed(self)
        elif (code := part.process.poll()) is not None:
            part.is_ready = part.is_idle = False
            part.crashes = part.crashes + 1 if now - part.since < QUICK_CRASH_S else 1
            if part.crashes > CRASHES:
                self.give_up(part, code)
            else:
                part.again_at = now + (PAUSE_S * 2 ** (part.crashes - 2) if part.crashes > 1 else 0)
                self.tell(f"The {part.name} ended ({_how(code)}); it is restarted.")
        elif not part.is_ready:
            self.note_ready(part)

    def is_needed(self, part: Running) -> bool:
        """Tell whether nothing goes on without a part: one that is awaited, unless another broker is there."""
        others = (one for one in self.parts if one is not part and one.name.startswith("broker") and one.is_ready)
        return part_of(part.name).awaited and not (part.name.startswith("broker") and any(others))

    def note_ready(self, part: Running) -> None:
        """Check whether a part that nobody awaits is ready."""
        if select.select([part.process.stdout], [], [], 0)[0]:
            with contextlib.suppress(PlatformError):  # it has ended; the next round notices
                self.await_ready(part, 0)
                self.changed(self)
                self.tell(f"The {part.name} {_state(part)}.")

    def give_up(self, part: Running, code: int) -> None:
        """Give up a part: PlatformError, or a sentence if the others can run without it."""
        words = (
            f"The {part.name} ended {part.crashes} times in a row, the last time with {code}:\n{last_lines(part.log)}"
        )
        if self.is_needed(part):
            raise PlatformError(words)
        part.again_at = float("inf")
        self.tell(f"{words}\nThe others run without it.")

    def stop(self) -> None:
        """Stop each part while it has what it needs: those that nobody awaits, services, and broker after broker."""
        brokers = [part for part in self.parts if part.name.startswith("broker")]
        services = [part for part in self.parts if part_of(part.name).awaited and part not in brokers]
        others = [part for part in self.parts if not part_of(part.name).awaited]
        for group in (others, services, *([broker] for broker in reversed(brokers))):
            for part in group:
                part.process.terminate()
            until = time.monotonic() + STOP_S
            for part in group:
                if part.process.wait(until - time.monotonic()) is None or part_of(part.name).java:
                    part.process.kill_group()
                part.process.close()
        self.parts.clear()


def ports_of(name: str, options: Options) -> Iterator[tuple[str, int]]:
    """Yield the ports on which a part listens, and for what each is; brokers of a cluster are controllers too."""
    if part_of(name).port:
        yield name, int(options.address(name).rpartition(":")[2])
    if name.startswith("broker") and options.broker_count > 1:
        yield f"controller of {name}", options.ports()[number_of(name) - 1].controller


def check_port(what: str, port: int, options: Options) -> None:
    """Raise PlatformError if the port is taken, with the process that has it and a way out."""
    if ports.is_free(HOST, port):
        return
    owner = ports.owner(port)
    offset = options.port_offset + 10_000 if options.port_offset < 30_000 else 0
    raise PlatformError(
        f"Port {port}, for the {what}, is taken by {owner or 'a process that is not yours'}. "
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


def _state(part: Running) -> str:
    if part.is_idle:
        return f"waits for its first use at {part.address}"
    return f"is ready at {part.address}" if part.address != NOWHERE else "runs"


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

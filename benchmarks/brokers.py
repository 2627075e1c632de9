"""A broker as a process that is started, loaded, watched, stopped or killed: Moldau and Apache Kafka alike."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from benchmarks import kafka, probe, tls
from benchmarks.client import Options
from benchmarks.places import PORT, PROJECT, BenchError

START_SECONDS = 120.0
STOP_SECONDS = 60.0
COMMON = {
    "num.partitions": "1",
    "log.segment.delete.delay.ms": "100",  # a topic's dirty pages go before the next run, unwritten
    "log.cleaner.backoff.ms": "1000",
}


OURS = Path(sys.executable).with_name("moldau")


def moldau_command(home: Path, port: int, settings: dict[str, str], program: Path = OURS) -> list[str]:
    """What a user types: by default the command that stands beside the Python that runs the benchmarks."""
    chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    listen = [] if "listeners" in settings else ["--listen", f"127.0.0.1:{port}"]
    return [str(program), "broker", "--data-dir", str(home / "data"), *listen, *chosen]


def environment() -> dict[str, str]:
    """An installed package has its byte code; a checkout may write it, whatever the shell says."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(slots=True)
class Broker:
    """One broker, on its own port and folder; it may be started many times."""

    name: str
    command: Callable[[Path, int, dict[str, str]], list[str]]
    home: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def encrypted(self) -> Options:
        """For a client that reaches it over TLS, if it is warm."""
        return tls.client_settings(self.home, self.port)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process, f"{self.name} was never started"
        return self.process.pid

    @property
    def folders(self) -> list[Path]:
        """Where partitions are."""
        return [self.data]

    def start(self, topic: str = "probe", settings: dict[str, str] | None = None) -> float:
        """Seconds from exec to the first acknowledged record in `topic`."""
        command = self.prepare(settings or {})
        begin = time.monotonic()
        self.launch(command)
        self.await_produce(topic)
        return time.monotonic() - begin

    def start_warm(self) -> None:
        """Start it for the rows that share it: with a listener for TLS besides."""
        self.start(settings=tls.broker_settings(self.home, self.port))

    def prepare(self, settings: dict[str, str]) -> list[str]:
        """Make its folder ready, and say how it is started."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.refuse_taken_port()
        return self.command(self.home, self.port, COMMON | settings)

    def launch(self, command: list[str]) -> None:
        with (self.home / "broker.log").open("ab") as log:
            # A session of its own, so that Ctrl-C reaches the benchmarks first and they stop it in order.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env=environment(),
                start_new_session=True,
            )

    def await_produce(self, topic: str) -> None:
        """Return when it has acknowledged a record in `topic`."""
        try:
            probe.wait_for_produce(self.port, topic, START_SECONDS, lambda: self.alive)
        except BenchError as error:
            self.kill()
            raise BenchError(f"{self.name} did not start: {error} Its log ends: {self.log_tail()}") from None

    def refuse_taken_port(self) -> None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                raise BenchError(f"Port {self.port} is taken; choose others by BENCH_PORT.")

    def log_tail(self) -> str:
        return (self.home / "broker.log").read_text(errors="replace").strip()[-300:]

    def stop(self) -> float:
        """Seconds that a clean stop took; killed if it does not come to an end."""
        begin = time.monotonic()
        self.ask_to_stop()
        if self.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        self.kill()
        return time.monotonic() - begin

    def ask_to_stop(self) -> None:
        """SIGTERM, and nothing more."""
        if self.process and self.alive:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, of the process that this object started."""
        if self.process and self.alive:
            self.process.kill()
            self.process.wait(STOP_SECONDS)

    def wipe(self) -> None:
        """Forget everything: the next start is of an empty broker."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def cpu_seconds(self) -> float:
        """User and system time of the broker and of what it started, finished children included."""
        return sum(cpu_clock(pid) for pid in tree(self.pid)) + reaped_cpu_seconds(self.pid)

    def rss_mb(self) -> float:
        """Resident memory of the broker and of what it started."""
        return sum(rss_kb(pid) for pid in tree(self.pid)) / 1024


class Peer(Protocol):
    """What is loaded and watched: a broker, or a cluster of them."""

    name: str
    home: Path

    @property
    def address(self) -> str:
        """For a client's `bootstrap.servers`."""
        ...

    @property
    def folders(self) -> list[Path]:
        """Where partitions are."""
        ...

    @property
    def alive(self) -> bool: ...

    def start(self, topic: str = "probe", settings: dict[str, str] | None = None) -> float:
        """Seconds from exec to the first acknowledged record in `topic`."""
        ...

    def start_warm(self) -> None:
        """Start it for the rows that share it."""
        ...

    def stop(self) -> float:
        """Seconds that a clean stop took."""
        ...

    def wipe(self) -> None:
        """Forget everything."""
        ...

    def cpu_seconds(self) -> float:
        """User and system time of all of it."""
        ...

    def rss_mb(self) -> float:
        """Resident memory of all of it."""
        ...


def tree(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from tree(int(child))


def cpu_clock(pid: int) -> float:
    """The kernel's CPU clock of a process: nanoseconds, threads that have ended included."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0  # a child that has just ended; its parent's account has it


def reaped_cpu_seconds(pid: int) -> float:
    """CPU time of children that have ended and were waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def whole_cpu_seconds(*pids: int) -> float:
    """CPU time of processes and all below them; that of one that has ended is in its parent's account."""
    total = 0.0
    for pid in pids:
        for one in tree(pid):
            with contextlib.suppress(OSError):  # it ends just now
                total += cpu_clock(one) + reaped_cpu_seconds(one)
    return total


def rss_kb(pid: int) -> int:
    """VmRSS."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


def peers(home: Path, before: Path | None = None) -> list[Broker]:
    """Kafka, an earlier Moldau if one is given, and Moldau, in the order of their runs; none is started."""
    earlier: list[Broker] = []
    if before is not None:
        program = before / ".venv" / "bin" / "moldau"
        if not program.exists():
            raise BenchError(f"{program} is missing; run make setup in that checkout.")
        earlier = [Broker("before", partial(moldau_command, program=program), home / "before", PORT + 3)]
    return [
        Broker("kafka", kafka.command, home / "kafka", PORT),
        *earlier,
        Broker("moldau", moldau_command, home / "moldau", PORT + 2),
    ]

"""A storm of TLS connections on a broker, `make storm`: all at once, again, and as many that stop half-way.

Somebody who was inside before produces meanwhile. Printed are how many came in and how fast, the most memory that the
broker had, and how long the producer waited; it fails where a bound is missed. Producer and clients are processes of
their own, and the clients give way to the others, as if they were on other machines. Everything is on loopback, and
bounded: `python -m tests.storm COUNT`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from moldau.client import CONTROLLER, Client, build, check, produce
from moldau.client import messages as m
from moldau.testing.process import Broker, eventually
from moldau.wire.records import Record
from tests.broker.authentication.secured import Secured

COUNT = 10_000
MEMORY_MB = 300.0
P99_MS = 100.0
SECONDS = 240.0  # for one wave
CLIENTS = 2  # processes
SPARE_FILES = 200
FEW_FILES = 10  # that the broker itself may open meanwhile
GIVE_WAY = 10  # how much nicer the clients are than the broker
STAYS_S = 3.0  # how long a wave stays, once all are there
TOPIC = "inside"
HALF_HELLO = bytes.fromhex("16030102000100")  # a record of a hello of 512 bytes that never comes
OUR_METHOD = get_context("spawn")
Writer = asyncio.StreamWriter


class Wave(NamedTuple):
    """What came of a wave at one of the clients."""

    came: int
    seconds: float


class Child:
    """A process of ours that answers what it is sent."""

    def __init__(self, run: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = OUR_METHOD.Pipe()
        self._process: BaseProcess = OUR_METHOD.Process(target=run, args=(theirs, *arguments), daemon=True)
        self._process.start()

    def send(self, what: str) -> None:
        self._pipe.send(what)

    def answer(self) -> Any:
        if not self._pipe.poll(SECONDS + 60):
            raise TimeoutError("a process of the storm does not answer")
        return self._pipe.recv()

    def ask(self, what: str) -> Any:
        self.send(what)
        return self.answer()

    def close(self) -> None:
        with suppress(OSError):
            self.send("end")
        self._process.join(20)
        self._process.kill()


def produce_on(pipe: Pipe, settings: dict[str, object]) -> None:
    """Write a record at a time; answer each message but the last with the waits since the one before, in ms."""
    waits: list[float] = []
    done = threading.Event()
    with Client(settings) as client:

        def write() -> None:
            began = time.monotonic()
            produce(client, TOPIC, 0, build([Record(timestamp=1, value=b"x" * 100)]))
            waits.append((time.monotonic() - began) * 1000)

        def run() -> None:
            while not done.wait(0.005):
                write()

        topic = m.CreateTopicsRequest_CreatableTopic(TOPIC, 1, 1)
        check(client.send(m.CreateTopicsRequest([topic]), CONTROLLER).topics[0])
        write()  # connects
        thread = threading.Thread(target=run)
        thread.start()
        while pipe.recv() != "end":
            pipe.send(list(waits))
            waits.clear()
        done.set()
        thread.join()


def connect_on(pipe: Pipe, port: int, authority: str, count: int) -> None:
    """Open connections, in the way that a message names, until the next one comes; answer how many came in."""
    os.nice(GIVE_WAY)
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False

    async def serve() -> None:
        while (what := await asyncio.to_thread(pipe.recv)) != "end":
            wave, writers = await open_all(port, count, what, context)
            pipe.send(wave)
            await asyncio.to_thread(pipe.recv)
            for writer in writers:
                writer.transport.abort()
            await asyncio.sleep(0)
            pipe.send(None)

    uvloop.run(serve())


async def open_all(port: int, count: int, what: str, context: ssl.SSLContext) -> tuple[Wave, list[Writer]]:
    """Open connections at once."""
    began, writers = time.monotonic(), list[Writer]()
    first = {"half a hello": HALF_HELLO, "a hello alone": hello(context)}.get(what)
    tls: dict[str, Any] = {} if first else {"ssl": context, "ssl_handshake_timeout": SECONDS}

    async def one() -> None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, **tls)
        except (OSError, TimeoutError):
            return
        if first:
            writer.write(first)
        writers.append(writer)

    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(count))), SECONDS)
    return Wave(len(writers), time.monotonic() - began), writers


def hello(context: ssl.SSLContext) -> bytes:
    """The first message of a TLS client."""
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def most_megabytes(pid: int) -> float:
    """The most memory that a process had since `forget_most`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def forget_most(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def storm(pid: int, count: int, inside: Child, clients: list[Child]) -> Iterator[str]:
    """Let the waves come and go; yields what is not as it should be."""
    inside.ask("forget")  # it is there
    before = files(pid)
    for name in ("at once", "again", "half a hello", "a hello alone"):
        inside.ask("forget")
        forget_most(pid)
        for client in clients:
            client.send(name)
        waves: list[Wave] = [client.answer() for client in clients]
        came = sum(wave.came for wave in waves)
        eventually(
            lambda all_of_them=before + came: files(pid) >= all_of_them, SECONDS, "that the broker has accepted all"
        )
        time.sleep(STAYS_S)
        for client in clients:
            client.ask("go")
        eventually(lambda: files(pid) < before + FEW_FILES, SECONDS, "that all are closed")
        waits, memory = sorted(inside.ask("how long")), most_megabytes(pid)
        p99 = waits[int(len(waits) * 0.99)]
        told = f"{name:<13} {came:>6} of {count} in {max(wave.seconds for wave in waves):6.1f} s, {memory:5.0f} MB"
        told += f"; the producer: {len(waits)} writes, median {statistics.median(waits):.1f} ms, p99 {p99:.1f} ms"
        print(f"{told}, at most {waits[-1]:.1f} ms", flush=True)
        if came < count:
            yield f"{name}: {count - came} did not come in"
        if memory >= MEMORY_MB:
            yield f"{name}: {memory:.0f} MB of memory, {MEMORY_MB:.0f} at most"
        if p99 >= P99_MS:
            yield f"{name}: the producer waited {p99:.0f} ms at p99, {P99_MS:.0f} at most"


def allow_files(wanted: int) -> None:
    """Let us and the broker have as many open files, or say that it cannot be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        sys.exit(
            f"{wanted} open files are needed, and {hard} allowed; raise the limit (ulimit -Hn) or name a smaller count"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


@contextmanager
def children(secured: Secured, count: int) -> Iterator[tuple[Child, list[Child]]]:
    """The producer and the clients, each a process."""
    shares = [count // CLIENTS + (number < count % CLIENTS) for number in range(CLIENTS)]
    made = [Child(produce_on, secured.client("SASL_SSL", "PLAIN", "admin"))]
    made += [Child(connect_on, secured.ports["SSL"], str(secured.folder / "ca.pem"), share) for share in shares]
    try:
        yield made[0], made[1:]
    finally:
        for child in made:
            child.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    allow_files(count + SPARE_FILES)
    with tempfile.TemporaryDirectory() as folder:
        secured = Secured(Path(folder))
        more = {"listener.name.ssl.ssl.client.auth": "none", "moldau.authentication.max.connections": str(2 * count)}
        broker = Broker(secured.broker() | more | {"moldau.authentication.timeout.ms": str(int(SECONDS * 1000))})
        broker.start()
        try:
            assert broker.pid is not None
            with children(secured, count) as (inside, clients):
                missed = list(storm(broker.pid, count, inside, clients))
            broker.stop()
        finally:
            broker.kill()
    sys.exit("\n".join(missed) or 0)


if __name__ == "__main__":
    main()

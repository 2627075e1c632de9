"""A storm of TLS connections on a broker, `make storm`: all at once, again, and as many that stop half-way.

Somebody who was inside before produces meanwhile. Printed are how many came in and how fast, the broker's memory, and
how long the producer waited. Everything is on loopback, and bounded: `python -m tests.storm COUNT`.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from moldau.client import CONTROLLER, Client, build, check, produce
from moldau.client import messages as m
from moldau.testing.process import Broker
from moldau.wire.records import Record
from tests.broker.authentication.secured import Secured

COUNT = 2_000
SECONDS = 240.0  # for one wave
TOPIC = "inside"
HALF_HELLO = bytes.fromhex("16030102000100")  # a record of a hello of 512 bytes that never comes


class Producer:
    """Somebody who writes a record at a time: how long each took, in milliseconds."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.waits: list[float] = []
        self._client = Client(settings)
        check(self._client.send(m.CreateTopicsRequest([_topic()]), CONTROLLER).topics[0])
        self._stop = threading.Event()
        self._write()  # connects
        self.waits.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _write(self) -> None:
        began = time.monotonic()
        produce(self._client, TOPIC, 0, build([Record(timestamp=1, value=b"x" * 100)]))
        self.waits.append((time.monotonic() - began) * 1000)

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            self._write()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


def _topic() -> m.CreateTopicsRequest_CreatableTopic:
    return m.CreateTopicsRequest_CreatableTopic(TOPIC, 1, 1)


async def wave(port: int, count: int, context: ssl.SSLContext | None) -> tuple[int, float, list[asyncio.StreamWriter]]:
    """Open connections at once, with TLS or with half a hello; returns how many came in, the time, and them."""
    began, writers = time.monotonic(), list[asyncio.StreamWriter]()

    async def one() -> None:
        try:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, ssl_handshake_timeout=_time(context)
            )
        except (OSError, TimeoutError):
            return
        if context is None:
            writer.write(HALF_HELLO)
        writers.append(writer)

    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(count))), SECONDS)
    return len(writers), time.monotonic() - began, writers


def _time(context: ssl.SSLContext | None) -> float | None:
    return SECONDS if context else None


def megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def storm(port: int, count: int, secured: Secured, pid: int, inside: Producer) -> None:
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.check_hostname = False
    for name, chosen in (("at once", context), ("again", context), ("half a hello", None)):
        inside.waits.clear()
        came, seconds, writers = await wave(port, count, chosen)
        memory, waits = megabytes(pid), sorted(inside.waits) or [0.0]
        p99 = waits[int(len(waits) * 0.99)]
        told = f"{name:<13} {came:>6} of {count} in {seconds:6.1f} s, {memory:5.0f} MB"
        print(f"{told}; the producer: {len(waits)} writes, median {statistics.median(waits):.1f} ms, p99 {p99:.1f} ms")
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(1)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * count + 200)), hard))
    with tempfile.TemporaryDirectory() as folder:
        secured = Secured(Path(folder))
        more = {"listener.name.ssl.ssl.client.auth": "none", "moldau.authentication.max.connections": str(2 * count)}
        broker = Broker(secured.broker() | more)
        broker.start()
        try:
            inside = Producer(secured.client("SASL_SSL", "PLAIN", "admin"))
            try:
                assert broker.pid is not None
                asyncio.run(storm(secured.ports["SSL"], count, secured, broker.pid, inside))
            finally:
                inside.close()
            broker.stop()
        finally:
            broker.kill()


if __name__ == "__main__":
    main()

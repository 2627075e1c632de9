"""`python -m benchmarks.http_client`: a bounded HTTP load from a process of its own.

A job comes in on stdin as JSON, the figures go out on stdout as JSON. It has one loop and speaks HTTP/1.1 over plain
connections, so that it costs little beside the service that it measures.
"""

import asyncio
import json
import sys
import time
from base64 import b64decode
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import httptools
import uvloop

SETTLE_SECONDS = 30.0  # how long the last answers are waited for
LINES = 65_536  # bytes that go out at once in a stream


class Failed(Exception):
    """An answer that is no success."""


@dataclass
class Job:
    """`requests` are sent in turn, `count` in all: as fast as answers come, or `rate` a second."""

    port: int
    requests: list[bytes]
    count: int
    connections: int
    rate: float = 0.0
    skip: int = 0  # of the first, no latency is kept
    contains: bytes = b""  # what is counted in the answers
    until: int = 0  # stop when so many were counted
    latencies: list[float] = field(default_factory=list)
    sent: int = 0
    done: int = 0
    found: int = 0
    error: str = ""


class Connection(asyncio.Protocol):
    """One request at a time. `due` is when it should have gone out, which its latency counts from."""

    def __init__(self, job: Job, idle: deque["Connection"], finished: asyncio.Event) -> None:
        self.job, self.idle, self.finished = job, idle, finished
        self.parser, self.due, self.number, self.body = httptools.HttpResponseParser(self), 0.0, 0, b""
        self.waiting: deque[tuple[int, float]] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send(self, number: int, due: float) -> None:
        self.number, self.due = number, due
        self.transport.write(self.job.requests[number % len(self.job.requests)])

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        job = self.job
        job.done += 1
        job.found += self.body.count(job.contains) if job.contains else 0
        if self.number >= job.skip:
            job.latencies.append(time.perf_counter() - self.due)
        if self.parser.get_status_code() >= 300:
            job.error = self.body.decode(errors="replace")[:300] or "no body"
        self.parser, self.body = httptools.HttpResponseParser(self), b""
        if job.error or job.done >= job.count or (job.until and job.found >= job.until):
            self.finished.set()
        elif self.waiting:
            self.send(*self.waiting.popleft())
        elif not job.rate and job.sent < job.count:
            job.sent += 1
            self.send(job.sent - 1, time.perf_counter())
        else:
            self.idle.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.finished.is_set():
            self.job.error = f"the connection was lost: {error}"
            self.finished.set()


async def run(job: Job) -> dict[str, Any]:
    """All requests of a job, and how it went."""
    idle: deque[Connection] = deque()
    finished = asyncio.Event()
    loop = asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: Connection(job, idle, finished), "127.0.0.1", job.port))[1]
        for _ in range(job.connections)
    ]
    began = time.perf_counter()
    if job.rate:
        idle.extend(made)
        await pace(job, made, idle, finished)
    else:
        for connection in made[: job.count]:
            job.sent += 1
            connection.send(job.sent - 1, time.perf_counter())
    await asyncio.wait_for(finished.wait(), SETTLE_SECONDS + job.count / 50)
    seconds = time.perf_counter() - began
    for connection in made:
        connection.transport.close()
    return figures(job, seconds)


async def pace(job: Job, made: list[Connection], idle: deque[Connection], finished: asyncio.Event) -> None:
    """Requests go out when they are due; where no connection is free they wait, and that counts."""
    waiting: deque[tuple[int, float]] = deque()
    for connection in made:
        connection.waiting = waiting
    began = time.perf_counter()
    for number in range(job.count):
        due = began + number / job.rate
        if (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        if finished.is_set():
            return
        if idle:
            idle.popleft().send(number, due)
        else:
            waiting.append((number, due))


def figures(job: Job, seconds: float) -> dict[str, Any]:
    if job.error:
        raise Failed(job.error)
    rows = sorted(job.latencies) or [0.0]
    at = {name: rows[min(len(rows) - 1, int(len(rows) * part))] for name, part in (("p50", 0.5), ("p99", 0.99))}
    return {"seconds": seconds, "done": job.done, "found": job.found, "per_second": job.done / seconds, **at}


async def stream(port: int, head: bytes, line: bytes, count: int) -> dict[str, Any]:
    """One request whose body is `count` documents; it ends when each was reported on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.perf_counter()

    async def send() -> None:
        writer.write(head)
        lines = line * max(1, LINES // len(line))
        left = count
        while left:
            chunk = lines[: left * len(line)]
            left -= len(chunk) // len(line)
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    sending = asyncio.ensure_future(send())
    good, rest = 0, b""
    while not rest.endswith(b"0\r\n\r\n"):
        data = await asyncio.wait_for(reader.read(1 << 18), SETTLE_SECONDS)
        if not data:
            break
        good += (rest + data).count(b'"error_code":200') - rest.count(b'"error_code":200')
        rest = (rest + data)[-40:]
    seconds = time.perf_counter() - began
    await sending
    writer.close()
    if good < count:
        raise Failed(f"{good} of {count} records were written: {rest!r}")
    return {"seconds": seconds, "per_second": count / seconds}


def main() -> None:
    given = json.load(sys.stdin)
    kind = given.pop("kind")
    if kind == "stream":
        parts = {name: b64decode(given.pop(name)) for name in ("head", "line")}
        work = stream(**given, **parts)
    else:
        requests = [b64decode(text) for text in given.pop("requests")]
        work = run(Job(requests=requests, **{**given, "contains": given.get("contains", "").encode()}))
    try:
        print(json.dumps(uvloop.run(work)))
    except (Failed, TimeoutError, OSError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))


if __name__ == "__main__":
    main()

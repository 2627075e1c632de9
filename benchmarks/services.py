"""`python -m benchmarks.services`: the Schema Registry and the REST Proxy, each one process. Writes
docs/benchmarks-services.md."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.brokers import Broker, cpu_clock, environment, moldau_command, rss_kb
from benchmarks.places import CACHE, PORT, PROJECT, BenchError
from benchmarks.report import machine, spread
from benchmarks.table import Metric

PAGE = PROJECT / "docs" / "benchmarks-services.md"
RUN_SECONDS = 600
CONNECTIONS = 8
RATE = 500
V2_JSON = "application/vnd.kafka.json.v2+json"
RECORD = json.dumps({"value": {"type": "STRING", "data": "x" * 100}}).encode() + b"\n"


def request(method: str, path: str, body: bytes = b"", type: str = "application/json", **headers: str) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {text}" for name, text in headers.items())]
    lines += [f"Content-Type: {type}", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join((*lines, "", "")).encode() + body


def client(kind: str, **job: Any) -> dict[str, Any]:
    """What a client process found; BenchError where it failed."""
    given = {name: _text(value) for name, value in job.items()}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.http_client"],
        input=json.dumps({"kind": kind, **given}).encode(),
        capture_output=True,
        timeout=RUN_SECONDS,
        cwd=PROJECT,
        check=False,
    )
    found = json.loads(done.stdout or b"{}")
    if "error" in found or done.returncode:
        raise BenchError(f"The client failed: {found.get('error') or done.stderr.decode()[-300:]}")
    return found


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return [_text(one) for one in value] if isinstance(value, list) else value


@dataclass
class Service:
    """A service process. `port` is known when it is ready, `started` is what that took."""

    name: str
    arguments: list[str]
    settings: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    started: float = 0.0

    @property
    def pid(self) -> int:
        assert self.process, f"{self.name} was never started"
        return self.process.pid

    def start(self) -> None:
        began = time.monotonic()
        command = [sys.executable, "-m", "moldau", self.name, "--listen", "127.0.0.1:0", "--stop-with-stdin"]
        chosen = [word for setting in self.settings for word in ("--set", setting)]
        self.process = subprocess.Popen(
            [*command, *self.arguments, *chosen],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=PROJECT,
        )
        assert self.process.stdout
        line = self.process.stdout.readline().decode().strip()
        if not line.startswith("ready "):
            raise BenchError(f"moldau {self.name} did not start; its own words stand above.")
        self.port, self.started = int(line.rpartition(":")[2]), time.monotonic() - began

    def stop(self) -> None:
        if self.process is None:
            return
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def load(self, kind: str, *, per: int, **job: Any) -> dict[str, float]:
        """What a client finds, with the processor time of the service for each of `per` things."""
        before = cpu_clock(self.pid)
        found = client(kind, port=self.port, **job)
        return {**found, "cpu_us": (cpu_clock(self.pid) - before) * 1e6 / per}


@dataclass(frozen=True)
class Place:
    """Where rows are measured: a broker, a registry and a proxy, which are all warm. `many` is how many schemas."""

    registry: Service
    rest: Service
    cluster: str
    many: int
    records: int
    seconds: int
    turns: Iterator[int]


def schema(number: int) -> str:
    fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(("long", "string", "double", "boolean"))]
    return json.dumps({"type": "record", "name": f"Order{number}", "namespace": "shop", "fields": fields})


def register(place: Place) -> dict[str, float]:
    """Into a topic of its own."""
    turn = next(place.turns)
    place.registry.stop()
    place.registry.settings[:] = [f"kafkastore.topic=_schemas{turn}", f"schema.registry.group.id=g{turn}"]
    place.registry.start()
    requests = [
        request(
            "POST", f"/subjects/s{turn}-{at}/versions", json.dumps({"schema": schema(turn * place.many + at)}).encode()
        )
        for at in range(place.many)
    ]
    return place.registry.load("run", per=place.many, requests=requests, count=place.many, connections=CONNECTIONS)


def look_up(place: Place) -> dict[str, float]:
    if not place.registry.settings:
        register(place)
    requests = [request("GET", f"/schemas/ids/{1 + at}") for at in range(place.many)]
    count = place.many * 4
    return place.registry.load("run", per=count, requests=requests, count=count, connections=CONNECTIONS)


def restart(place: Place) -> dict[str, float]:
    if not place.registry.settings:
        register(place)
    place.registry.stop()
    place.registry.start()
    found = {"start": place.registry.started, "rss": rss_kb(place.registry.pid) / 1024}
    client(
        "run", port=place.registry.port, requests=[request("GET", f"/schemas/ids/{place.many}")], count=1, connections=1
    )
    return found


def topic(place: Place) -> str:
    name = f"t{next(place.turns)}"
    body = json.dumps({"topic_name": name, "partitions_count": 1}).encode()
    client(
        "run", port=place.rest.port, requests=[request("POST", f"{place.cluster}/topics", body)], count=1, connections=1
    )
    return name


def produce_stream(place: Place) -> dict[str, float]:
    head = (
        f"POST {place.cluster}/topics/{topic(place)}/records HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    return place.rest.load("stream", per=place.records, head=head, line=RECORD, count=place.records)


def consume(place: Place) -> dict[str, float]:
    """Records of a topic by one consumer instance, until all have come."""
    name = topic(place)
    body = json.dumps({"records": [{"value": "x" * 100}] * 1000}).encode()
    fill = request("POST", f"/topics/{name}", body, V2_JSON)
    client("run", port=place.rest.port, requests=[fill], count=place.records // 1000, connections=4)
    instance = f"/consumers/g-{name}/instances/i"
    new = json.dumps({"name": "i", "format": "json", "auto.offset.reset": "earliest"}).encode()
    own = json.dumps({"partitions": [{"topic": name, "partition": 0}]}).encode()
    v2 = "application/vnd.kafka.v2+json"
    steps = [request("POST", f"/consumers/g-{name}", new, v2), request("POST", f"{instance}/assignments", own, v2)]
    client("run", port=place.rest.port, requests=steps, count=2, connections=1)
    read = request("GET", f"{instance}/records?timeout=200&max_bytes=1000000", Accept=V2_JSON)
    job = {"requests": [read], "count": 10_000, "connections": 1, "contains": '"offset":', "until": place.records}
    found = place.rest.load("run", per=place.records, **job)
    client("run", port=place.rest.port, requests=[request("DELETE", instance)], count=1, connections=1)
    return {**found, "per_second": place.records / found["seconds"]}


def latency(place: Place) -> dict[str, float]:
    one = request("POST", f"{place.cluster}/topics/{topic(place)}/records", RECORD)
    count = RATE * (place.seconds + 1)
    return place.rest.load("run", per=count, requests=[one], count=count, connections=32, rate=RATE, skip=RATE)


@dataclass(frozen=True)
class Row:
    title: str
    run: Callable[[Place], dict[str, float]]
    metrics: tuple[Metric, ...]
    found: list[dict[str, float]] = field(default_factory=list)


CPU = Metric("cpu_us", "service CPU", "µs each")
ROWS = (
    Row("Registry: register {many:,} schemas", register, (Metric("per_second", "registrations", "/s"), CPU)),
    Row("Registry: schemas by id, {many:,} of them", look_up, (Metric("per_second", "look-ups", "/s"), CPU)),
    Row(
        "Registry: restart with {many:,} schemas",
        restart,
        (Metric("start", "exec to ready", "s", limit=2.0), Metric("rss", "RSS", "MB")),
    ),
    Row("REST v3: one stream of records of 100 B", produce_stream, (Metric("per_second", "records", "/s"), CPU)),
    Row("REST v2: one consumer instance", consume, (Metric("per_second", "records", "/s"), CPU)),
    Row(
        f"REST v3: a record a request, {RATE} requests/s",
        latency,
        (Metric("p50", "latency p50", "ms", 1e3), Metric("p99", "latency p99", "ms", 1e3), CPU),
    ),
)


@contextlib.contextmanager
def place(many: int, records: int, seconds: int) -> Iterator[Place]:
    """Everything started, and stopped whatever happens."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="services-", dir=CACHE) as home, contextlib.ExitStack() as closing:
        broker = Broker("moldau", moldau_command, Path(home), PORT + 4)
        closing.callback(broker.kill)
        broker.start()
        servers = ["--bootstrap-servers", broker.address]
        registry, rest = Service("registry", servers), Service("rest", servers)
        for service in (registry, rest):
            closing.callback(service.stop)
            service.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{rest.port}/v3/clusters") as answer:
            cluster = f"/v3/clusters/{json.load(answer)['data'][0]['cluster_id']}"
        yield Place(registry, rest, cluster, many, records, seconds, iter(range(1_000_000)))


METHOD = """\
Broker, service and one client process share the cores of one machine, over loopback; the median of the runs, and their
range. The client (`benchmarks/http_client.py`) is a loop on plain connections: {connections} of them, a request at a
time on each; the stream and the consumer instance have one. The registry writes each schema to its topic and reads it
back before it answers. Restart is from exec until it prints `ready`, with the schemas of one run. Latency
counts from when a request was due, so one that had to wait for a connection has waited; the first second is left out.
`service CPU` is processor time of the service alone, for each schema, look-up, record or request.
`python -m benchmarks.services` makes this page.
"""


def lines(row: Row, many: int) -> Iterator[tuple[str, str, str, str, str]]:
    for number, metric in enumerate(row.metrics):
        values = [one[metric.key] * metric.scale for one in row.found]
        verdict = metric.verdict(None, sorted(values)[len(values) // 2])
        title = row.title.format(many=many) if number == 0 else ""
        yield title, f"{metric.title}, {metric.unit}", spread(values), metric.expected, verdict


HEADINGS = ("what", "figure", "Moldau", "expected", "")


def page(many: int) -> str:
    where = "\n".join(f"| {name} | {text} |" for name, text in machine().items())
    rows = [HEADINGS, ("---", "---", "---:", "---", "---"), *(line for row in ROWS for line in lines(row, many))]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    method = METHOD.format(connections=CONNECTIONS)
    return f"# Benchmarks: Schema Registry and REST Proxy\n\n| | |\n|---|---|\n{where}\n\n{table}\n\n{method}"


def main(
    runs: Annotated[int, typer.Option(min=1)] = 3,
    schemas: Annotated[int, typer.Option(min=100, help="How many are registered in a run.")] = 10_000,
    records: Annotated[int, typer.Option(min=1000, help="How many are produced and consumed in a run.")] = 100_000,
    seconds: Annotated[int, typer.Option(min=1, help="How long the latency is looked at.")] = 10,
    only: Annotated[list[str] | None, typer.Option(help="Rows whose title contains this; nothing is kept.")] = None,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-services.md.")] = True,
) -> None:
    """Measure the Schema Registry and the REST Proxy."""
    console = Console()
    chosen = [row for row in ROWS if not only or any(word in row.title for word in only)]
    try:
        with place(schemas, records, seconds) as here:
            steps = [(row, number) for number in range(runs) for row in chosen]
            for row, _ in track(steps, "runs", console=console):
                row.found.append(row.run(here))
    except BenchError as error:
        console.print(f"[red]{error}[/]", highlight=False)
        raise typer.Exit(1) from None
    table = Table(*HEADINGS)
    for row in chosen:
        for line in lines(row, schemas):
            table.add_row(*line)
    console.print(table)
    if keep and not only:
        PAGE.write_text(page(schemas))


if __name__ == "__main__":
    typer.run(main)

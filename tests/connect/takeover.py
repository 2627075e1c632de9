"""Apache Connect and ours, one after the other, on the same topics: `python -m tests.connect.takeover`.

Apache Connect runs a FileStream source and a sink and is stopped; ours goes on with the same worker.properties, and
then Apache Connect again. In the end the sink has every line of the source once, in its order.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from moldau.testing import broker
from tests.connect.running import BROKER
from tests.needs import find
from tests.services import Service

PORT = 18183
START_S, PASS_S = 240.0, 120.0
LINES = 2000  # in each of the three runs
STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = """
bootstrap.servers={brokers}
group.id=takeover
config.storage.topic=takeover-configs
offset.storage.topic=takeover-offsets
status.storage.topic=takeover-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
key.converter={string}
value.converter={string}
listeners=http://127.0.0.1:{port}
offset.flush.interval.ms=1000
exactly.once.source.support=enabled
plugin.path={plugins}
"""


@contextmanager
def apache(properties: Path, libs: Path, log: Path, port: int = PORT) -> Iterator[httpx.Client]:
    command = ["java", "-Xmx400m", "-cp", f"{libs}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
    with log.open("ab") as out:
        process = subprocess.Popen([*command, str(properties)], stdout=out, stderr=out)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0, trust_env=False) as client:
            wait(lambda: process.poll() is None and is_up(client), START_S, f"Apache Connect is up ({log})")
            yield client
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def ours(properties: Path) -> Iterator[httpx.Client]:
    service = Service("connect", str(properties))
    try:
        yield service.http
    finally:
        service.stop()


def wait(reached: object, patience_s: float, what: str) -> None:
    deadline = time.monotonic() + patience_s
    while not reached():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {patience_s:.0f} s: {what}")
        time.sleep(0.2)


def append(file: Path, first: int) -> None:
    with file.open("a") as lines:
        lines.writelines(f"line {number}\n" for number in range(first, first + LINES))


def through(out: Path, into: Path, who: str) -> None:
    """Wait until the sink's file is the source's file."""
    wait(lambda: out.exists() and len(out.read_text().splitlines()) >= len(into.read_text().splitlines()), PASS_S, who)
    got, sent = out.read_text().splitlines(), into.read_text().splitlines()
    assert got == sent, f"{who}: {len(got)} lines of {len(sent)}, {len(set(got))} different ones"
    print(f"{who}: {len(got)} lines, none lost, none twice", flush=True)


def main() -> int:
    found = find("connect-jars")
    if found.path is None:
        print(f"not run: {found.reason}")
        return 0
    with tempfile.TemporaryDirectory() as name, broker(BROKER) as kafka:
        folder = Path(name)
        into, out, properties = folder / "in.txt", folder / "out.txt", folder / "worker.properties"
        (folder / "plugins").mkdir()
        text = WORKER.format(brokers=kafka.bootstrap_servers, string=STRING, port=PORT, plugins=folder / "plugins")
        properties.write_text(text)
        append(into, 0)
        with apache(properties, found.path, folder / "first.log") as client:
            source = {"connector.class": "FileStreamSource", "file": str(into), "topic": "lines"}
            sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": "lines"}
            for connector, config in (("source", source), ("sink", sink)):
                assert client.post("/connectors", json={"name": connector, "config": config}).status_code == 201
            through(out, into, "Apache Connect")
        append(into, LINES)
        with ours(properties) as client:
            through(out, into, "ours")
            assert sorted(client.get("/connectors").json()) == ["sink", "source"]
            assert client.put("/connectors/source/pause").status_code == 202
        append(into, 2 * LINES)
        with apache(properties, found.path, folder / "second.log") as client:
            wait(
                lambda: client.get("/connectors/source/status").json()["connector"]["state"] == "PAUSED",
                PASS_S,
                "paused",
            )
            assert client.put("/connectors/source/resume").status_code == 202
            through(out, into, "Apache Connect again")
            assert client.get("/connectors/source/topics").json() == {"source": {"topics": ["lines"]}}
    return 0


if __name__ == "__main__":
    sys.exit(main())

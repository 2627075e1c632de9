"""The same random requests to a worker of Apache Connect and to one of ours: `python -m tests.connect.judge.rest`.

Both have a broker of their own, the same settings and the same files. After each request status, body and Location are
compared, and then what both say of all connectors, for as long as it takes them to agree. A request that changes
something is sent to both only when they have come to rest.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from moldau.testing import broker
from tests.connect.judge.requests import Request, requests
from tests.connect.running import BROKER, STRING
from tests.connect.takeover import apache, ours
from tests.connect.test_rest_recorded import differences, normal
from tests.needs import find

PORTS = 18283, 18284
PATIENCE_S = 40.0
BUSY = (409, "Cannot complete request"), (409, "Nobody has the task"), (404, "Status for connector")
# What comes next is in our words, or in the order of Java's hashes.
OURS = re.compile(r"(Invalid regex:|available connectors are:|Connector config \{)[^\n]*(?:\n\[\n\^)?")
PLAIN = "org.apache.kafka.connect.errors.ConnectException: Failed to find", "Failed to find"
STATE = "/connectors?expand=status&expand=info"
WORKER = """
bootstrap.servers={brokers}
group.id=judged
config.storage.topic=judged-configs
offset.storage.topic=judged-offsets
status.storage.topic=judged-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
key.converter={string}
value.converter={string}
listeners=http://127.0.0.1:{port}
offset.flush.interval.ms=300
exactly.once.source.support=enabled
plugin.path={plugins}
"""


@dataclass(slots=True)
class Seen:
    """What came out: how many requests by endpoint and status, and where the two differ."""

    asked: Counter[str] = field(default_factory=Counter)
    deviations: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


class Pair:
    """Apache Connect and ours."""

    def __init__(self, theirs: httpx.Client, mine: httpx.Client) -> None:
        self.clients = theirs, mine

    def ask(self, request: Request) -> list[Any]:
        return [answer(client, request) for client in self.clients]

    def agree(self, ask: Callable[[], list[Any]]) -> list[str]:
        """Ask until both say the same; return how they differ if they do not."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            theirs, mine = ask()
            found = list(differences(mine, theirs))
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    def rest(self) -> list[str]:
        """Wait until both have come to rest in the same state."""
        deadline = time.monotonic() + PATIENCE_S
        found = self.agree(self._settled)
        while not found and time.monotonic() < deadline:
            time.sleep(0.3)
            if not list(differences(*reversed(self._settled()))):
                return []
            found = self.agree(self._settled)
        return found

    def _settled(self) -> list[Any]:
        return [state(client) for client in self.clients]


def answer(client: httpx.Client, request: Request) -> list[Any]:
    """Send a request, again while a worker is busy with itself, and return what can be compared."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = client.request(request.method, request.path, content=request.body, headers=request.headers)
        except httpx.HTTPError as error:
            raise AssertionError(f"{client.base_url} does not answer {request}: {error}") from error
        if not any(found.status_code == status and text in found.text for status, text in BUSY):
            break
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    port = str(client.base_url.port)
    body = comparable(parsed(found.text.replace(port, "PORT")))
    return [found.status_code, body, found.headers.get("location", "").replace(port, "PORT")]


def state(client: httpx.Client) -> Any:
    """Return what a worker says of all connectors, with the offsets of sources."""
    found = answer(client, Request("GET", STATE))[1]
    for name, one in found.items() if isinstance(found, dict) else ():
        offsets = answer(client, Request("GET", f"/connectors/{quote(name, safe='')}/offsets"))[1]
        rows = offsets.get("offsets", [offsets])
        one["offsets"] = sorted((row for row in rows if not is_of_sink(row)), key=json.dumps)
    return found


def is_of_sink(row: Any) -> bool:
    return "kafka_topic" in (row.get("partition") or {})


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def comparable(body: Any) -> Any:
    """Leave out words of documentation, lines of traces, and the order of Java's hashes."""
    return untraced(normal(body))


def untraced(body: Any) -> Any:
    if isinstance(body, str):
        return OURS.sub(r"\1", body).replace(*PLAIN)
    if isinstance(body, dict):
        return {
            name: value.partition("\n")[0] if name == "trace" else untraced(value)
            for name, value in body.items()
            if name not in ("commit", "kafka_cluster_id", "last_modified")
        }
    if isinstance(body, list):
        rows = [untraced(one) for one in body]
        is_of_offsets = all(isinstance(one, dict) and one.keys() == {"partition", "offset"} for one in rows)
        return sorted(rows, key=json.dumps) if is_of_offsets else rows
    return body


def deviation(request: Request, theirs: list[Any], mine: list[Any]) -> str | None:
    """Name the deviation by which two answers may differ: Connect fails with an exception where a client is wrong."""
    if theirs[0] == 500 and (mine[0] == 400 or "PatternSyntaxException" in theirs[1].get("message", "")):
        return f"500 is 400: {(theirs[1] or {}).get('message', '')[:90]}"
    if request.what == "GET offsets" and any(map(is_of_sink, (theirs[1] or {}).get("offsets", ()))):
        return "offsets of a sink: they depend on the number of transactions, and empty partitions have none here"
    if theirs[0] == 415 and request.what == "something wrong":
        return "415: the type of a body that nobody reads"
    if theirs[0] == 404 and mine[0] == 400 and "has no body" in mine[1].get("message", ""):
        return "404 is 400: a request without a body"
    return None


def play(pair: Pair, request: Request, seen: Seen) -> bool:
    """Send one request to both, and look at what has become of it; return whether both are in the same state."""
    asked = pair.ask(request)
    seen.asked[f"{request.what} {asked[0][0]}"] += 1
    known = deviation(request, *asked)
    if known is not None:
        seen.deviations[known] += 1
    else:
        found = list(differences(asked[1], asked[0]))
        if found and request.method == "GET":
            found = pair.agree(lambda: pair.ask(request))
        seen.differences += [f"{request}\n    answer{one}" for one in found]
    if request.method == "GET":
        return True
    found = pair.rest()
    seen.differences += [f"{request}\n    state{one}" for one in found]
    return not found


def sequence(pair: Pair, seed: str, count: int, folder: Path, until: float, seen: Seen) -> None:
    """Play one sequence and clean up after it; stop it when states differ, which would only be told again."""
    for request in requests(random.Random(seed), count, folder):
        if time.monotonic() > until or not play(pair, request, seen):
            break
    for client in pair.clients:
        for name in client.get("/connectors").json():
            answer(client, Request("DELETE", f"/connectors/{quote(name, safe='')}"))
    pair.rest()


@contextmanager
def both(folder: Path) -> Iterator[Pair]:
    libs = find("connect-jars")
    if libs.path is None:
        raise SystemExit(f"not run: {libs.reason}")
    with ExitStack() as stack:
        files = []
        for number, port in enumerate(PORTS):
            kafka = stack.enter_context(broker(BROKER))
            for topic in ("lines", "more"):
                kafka.create_topic(topic)
            files.append(folder / f"worker-{number}.properties")
            (folder / "plugins").mkdir(exist_ok=True)
            values = {"brokers": kafka.bootstrap_servers, "port": port, "plugins": folder / "plugins"}
            files[-1].write_text(WORKER.format(string=STRING, **values))
        theirs = stack.enter_context(apache(files[0], libs.path, folder / "connect.log", PORTS[0]))
        mine = stack.enter_context(ours(files[1]))
        yield Pair(theirs, mine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=20)
    parser.add_argument("--requests", type=int, default=40, help="in each sequence")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all of it, the start aside")
    parser.add_argument("--seed", default="1")
    given = parser.parse_args()
    seen = Seen()
    with tempfile.TemporaryDirectory() as name, both(Path(name)) as pair:
        until = time.monotonic() + given.seconds
        for number in range(given.sequences):
            if time.monotonic() > until:
                break
            before = len(seen.differences)
            sequence(pair, f"{given.seed}/{number}", given.requests, Path(name), until, seen)
            for one in seen.differences[before:]:
                print(f"sequence {number}: {one}", flush=True)
    for what, count in sorted(seen.asked.items()):
        print(f"{count:5} {what}")
    for what, count in seen.deviations.most_common():
        print(f"{count:5} deviation, {what}")
    print(f"{sum(seen.asked.values())} requests, {len(seen.differences)} differences")
    return 1 if seen.differences or not seen.asked else 0


if __name__ == "__main__":
    sys.exit(main())

"""The order microservices on Spark, by their one command, on an empty broker and with no state; then once more on what
they left. `python -m tests.examples.orders_run [--orders N]`: N orders each time.

At the end each order must have been checked once by each service, and decided on once and rightly; who is known and has
paid must have one letter; and the search over HTTP must find each valid order once and no other.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from moldau.client import Client, Fetcher, records
from moldau.testing import Broker, broker, eventually

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams" / "orders"
sys.path.insert(0, str(FOLDER))

from load import PEOPLE, orders, place  # noqa: E402
from orders_topics import CHECKS, EMAILS, ORDERS, PARTITIONS, VALIDATIONS  # noqa: E402

URL = "http://127.0.0.1:7070"
START_S, END_S = 400.0, 120.0
Order = tuple[dict[str, Any], bool]  # and whether it is valid


@contextmanager
def services(kafka: Broker, folder: Path) -> Iterator[None]:
    """All of them, until they are told to end; they must end rightly."""
    log = folder / "services.log"
    env = {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, str(FOLDER)], cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True
        ) as process,
    ):
        try:
            eventually(lambda: process.poll() is not None or "orders at" in log.read_text(), timeout_s=START_S)
            assert process.poll() is None, "the services ended"
            yield
            process.terminate()
            assert process.wait(END_S) == 0, f"the services ended with {process.returncode}"
        except BaseException:
            print(log.read_text()[-6000:])
            raise
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def sent(count: int, seed: int) -> list[Order]:
    """Orders that were placed and decided on."""
    made = list(orders(count, seed))
    with httpx.Client(base_url=URL, timeout=60, trust_env=False) as client, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda one: place(client, one[0]), made))
    times = sorted(seconds for _, seconds in found)
    print(f"{count} orders, half of them decided within {times[count // 2]:.1f} s, all within {times[-1]:.1f} s")
    wrong = [
        (order["id"], state) for (order, right), (state, _) in zip(made, found, strict=True) if is_wrong(right, state)
    ]
    assert not wrong, wrong
    return made


def is_wrong(right: bool, state: str) -> bool:
    return state != ("VALIDATED" if right else "FAILED")


def written(kafka: Broker, topic: str) -> list[tuple[str, Any]]:
    """What is committed in a topic, partition by partition."""
    found: list[tuple[str, Any]] = []
    with Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        fetcher = Fetcher(client, isolation_level="read_committed")
        for number in range(PARTITIONS):
            offset, end = 0, 1
            while offset < end:
                part = fetcher.fetch({(topic, number): offset})[topic, number]
                rows = [row for batch in part.committed() for row in records(batch)]
                found += [((row.key or b"").decode(), json.loads(row.value or b"null")) for row in rows]
                offset, end = part.next_offset(offset), part.last_stable_offset
    return found


def check(kafka: Broker, made: list[Order]) -> None:
    states: dict[str, list[str]] = {}
    for key, order in written(kafka, ORDERS):
        states.setdefault(key, []).append(order["state"])
    assert states == {order["id"]: ["CREATED", "VALIDATED" if right else "FAILED"] for order, right in made}
    checks = Counter((key, said["check"]) for key, said in written(kafka, VALIDATIONS))
    assert checks == Counter((order["id"], name) for order, _ in made for name in CHECKS)
    known = Counter(order["id"] for order, _ in made if order["customer"] in PEOPLE)
    eventually(lambda: letters(kafka) == known, timeout_s=END_S, what=f"letters of {known}")
    print(f"{len(states)} orders decided on once, {len(known)} letters")


def letters(kafka: Broker) -> Counter[str]:
    return Counter(key for key, _ in written(kafka, EMAILS))


def search(made: list[Order]) -> None:
    """Each valid order is found by its id, once; the index may be a moment behind."""
    with httpx.Client(base_url=URL, timeout=60, trust_env=False) as client:

        def found(order: dict[str, Any]) -> list[str]:
            return [one["id"] for one in client.get("/v1/search", params={"q": order["id"]}).json()]

        for order, right in made:
            wanted = [order["id"]] if right else []
            eventually(lambda: found(order) == wanted, timeout_s=END_S, what=f"{order['id']} in the index")  # noqa: B023
        assert client.get("/v1/orders/nobody", params={"timeout_ms": 300}).status_code == 504


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.examples.orders_run", description=__doc__)
    parser.add_argument("--orders", type=int, default=60)
    given = parser.parse_args()
    made: list[Order] = []
    with broker() as kafka, tempfile.TemporaryDirectory() as folder:
        for start in range(2):
            began = time.monotonic()
            with services(kafka, Path(folder)):
                print(f"start {start + 1}: services are there after {time.monotonic() - began:.0f} s", flush=True)
                made += sent(given.orders, seed=start)
                check(kafka, made)
                search(made)
            print(f"ended after {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

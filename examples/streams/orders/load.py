"""The load generator: customers, stock and orders, some of them wrong; then what became of each order.

`python examples/streams/orders/load.py 200` asks the service on localhost:7070.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from confluent_kafka import Producer
from orders_topics import AS_STREAMS_DO, CUSTOMERS, STOCK

PEOPLE = {
    name: {"name": name.title(), "email": f"{name}@example.com", "level": "gold"} for name in ("ann", "bob", "cid")
}
PATIENCE_S = 300.0  # the first batches of five queries take their time
PRODUCTS = {"book": 1_000_000, "pen": 1_000_000, "ink": 0}  # there is no ink


def prepare(bootstrap_servers: str) -> None:
    """Customers and stock, which must be there before the first order."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, **AS_STREAMS_DO})
    for topic, rows in ((CUSTOMERS, PEOPLE), (STOCK, PRODUCTS)):
        for key, value in rows.items():
            producer.produce(topic, json.dumps(value).encode(), key.encode())
    producer.flush(30)


def orders(count: int, seed: int = 0) -> Iterator[tuple[dict[str, Any], bool]]:
    """Orders, and whether each is valid: of each kind of mistake there are some."""
    chance, run = random.Random(seed), uuid.uuid4().hex[:8]
    for number in range(count):
        order: dict[str, Any] = {"id": f"{run}-{number}", "customer": f"customer-{run}-{number}", "product": "book"}
        order |= {"quantity": chance.randint(1, 3), "price": chance.randint(1, 100)}
        kind = chance.choice(("right", "right", "right", "details", "inventory", "fraud"))
        if kind == "details":
            order["quantity"] = 0
        elif kind == "inventory":
            order["product"] = "ink"
        elif kind == "fraud":
            order |= {"quantity": 3, "price": 1_000}
        elif number % 4 == 0:  # who is known orders in each run, but for little: it adds up
            order |= {"customer": chance.choice(list(PEOPLE)), "quantity": 1, "price": 1}
        yield order, kind == "right"


def place(client: httpx.Client, order: dict[str, Any]) -> tuple[str, float]:
    """Posts an order and its payment, and waits for the decision: the state, and how long that took."""
    began = time.monotonic()
    client.post("/v1/orders", json=order).raise_for_status()
    payment = {"order": order["id"], "amount": order["quantity"] * order["price"]}
    client.post("/v1/payments", json=payment).raise_for_status()
    while time.monotonic() - began < PATIENCE_S:
        answer = client.get(f"/v1/orders/{order['id']}/validated", params={"timeout_ms": 20_000})
        if answer.status_code == 200:
            return answer.json()["state"], time.monotonic() - began
    return "UNDECIDED", time.monotonic() - began


def main(count: int, url: str = "http://127.0.0.1:7070", threads: int = 16) -> Counter[tuple[bool, str]]:
    """How many orders that were right or wrong ended in which state."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client, ThreadPoolExecutor(threads) as pool:
        made = list(orders(count))
        found = list(pool.map(lambda one: place(client, one[0]), made))
    times = sorted(seconds for _, seconds in found)
    print(f"{count} orders, half of them decided within {times[len(times) // 2]:.2f} s, all within {times[-1]:.2f} s")
    return Counter((right, state) for (_, right), (state, _) in zip(made, found, strict=True))


if __name__ == "__main__":
    for (right, state), count in sorted(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100).items()):
        print(f"{'right' if right else 'wrong'} orders {state}: {count}")

"""The order microservices, service by service, with the test driver: each valid order ends validated, once. The orders
service and the search index run on a broker. All of them on Spark: `python -m tests.examples.orders_run`.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.client import Client, Fetcher, records
from moldau.streams import TopologyTestDriver
from moldau.testing import Broker, eventually
from moldau.wire.numbers import murmur2

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams" / "orders"
NAMES = ("orders_topics", "details", "fraud", "inventory", "aggregator", "emails", "search", "service", "load")


@pytest.fixture
def shop() -> Iterator[dict[str, Any]]:
    """The modules of the example, by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


class Wired:
    """All services, each with a driver of its own; what one writes, those who read the topic get."""

    def __init__(self, shop: dict[str, Any]) -> None:
        names = ("details", "fraud", "inventory", "aggregator", "emails")
        self.drivers = {name: TopologyTestDriver(shop[name].builder) for name in names}
        self.written: dict[str, list[tuple[str, Any]]] = {}
        self.types = shop["orders_topics"].TYPES

    def send(self, topic: str, key: str, value: Any, timestamp: int) -> None:
        self.written.setdefault(topic, []).append((key, value))
        for driver in self.drivers.values():
            if topic in driver.task.readers:
                driver.create_input_topic(topic).pipe_input(key, value, timestamp)
        for driver in self.drivers.values():
            for name in sorted(driver.produced_topic_names & set(TOPICS)):
                for record in driver.create_output_topic(name, **self.types).read_records_to_list():
                    self.send(name, record.key, record.value, record.timestamp)

    def close(self) -> None:
        for driver in self.drivers.values():
            driver.close()


TOPICS = ("orders", "order-validations", "order-emails")


def order(id: str, **changes: Any) -> dict[str, Any]:
    made = {"id": id, "customer": "ann", "product": "book", "quantity": 2, "price": 10, "state": "CREATED"}
    return {**made, **changes}


@pytest.fixture
def wired(shop: dict[str, Any]) -> Iterator[Wired]:
    made = Wired(shop)
    made.send("warehouse-inventory", "book", 10, 0)
    made.send("customers", "ann", {"name": "Ann", "email": "ann@example.com", "level": "gold"}, 0)
    yield made
    made.close()


def states(wired: Wired, id: str) -> list[str]:
    return [value["state"] for key, value in wired.written["orders"] if key == id]


def test_a_valid_order_is_validated_once(wired: Wired) -> None:
    wired.send("orders", "o1", order("o1"), 100)
    assert states(wired, "o1") == ["CREATED", "VALIDATED"]
    assert Counter(value["check"] for _, value in wired.written["order-validations"]) == Counter(
        details=1, fraud=1, inventory=1
    )


@pytest.mark.parametrize(
    "mistake", [{"quantity": 0}, {"product": "ink"}, {"price": 2_000}, {"customer": ""}, {"quantity": 11}]
)
def test_an_order_that_is_wrong_in_one_way_fails(wired: Wired, mistake: dict[str, Any]) -> None:
    wired.send("orders", "o1", order("o1", **mistake), 100)
    assert states(wired, "o1") == ["CREATED", "FAILED"]


def test_stock_is_promised_once(wired: Wired) -> None:
    for number in range(3):
        wired.send("orders", f"o{number}", order(f"o{number}", quantity=4), 100 + number)
    assert [states(wired, f"o{number}")[-1] for number in range(3)] == ["VALIDATED", "VALIDATED", "FAILED"]


def test_many_small_orders_of_a_customer_are_fraud_too(wired: Wired) -> None:
    for number, price in enumerate((900, 900, 900)):
        wired.send("orders", f"o{number}", order(f"o{number}", quantity=1, price=price), 100 + number)
    assert [states(wired, f"o{number}")[-1] for number in range(3)] == ["VALIDATED", "VALIDATED", "FAILED"]


def test_who_has_paid_gets_one_letter(wired: Wired) -> None:
    wired.send("orders", "o1", order("o1"), 100)
    wired.send("payments", "o1", {"order": "o1", "amount": 20}, 200)
    ((key, said),) = wired.written["order-emails"]
    assert (key, said["to"]) == ("o1", "ann@example.com")
    assert said["text"] == "Dear Ann, we have received 20 for 2 book."


def test_keys_lie_in_the_partitions_where_streams_look_for_them(shop: dict[str, Any], kafka: Broker) -> None:
    topics = shop["orders_topics"].TOPICS
    for topic in topics:
        kafka.create_topic(topic, partitions=4)
    shop["load"].prepare(kafka.bootstrap_servers)
    service = shop["service"].OrdersService(kafka.bootstrap_servers, "127.0.0.1:0", None)
    for number in range(20):
        service.write("orders", f"o{number}", order(f"o{number}"))
    service.close()
    with Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        places = {(topic, number): 0 for topic in topics for number in range(4)}
        found = [(place, row.key) for place, got in Fetcher(client).fetch(places).items() for row in rows_of(got)]
    assert len(found) == 26
    assert all(murmur2(key) % 4 == partition for (_, partition), key in found)


def rows_of(got: Any) -> list[Any]:
    return [row for batch in got.committed() for row in records(batch)]


@pytest.fixture
def site(shop: dict[str, Any], kafka: Broker) -> Iterator[tuple[httpx.Client, Any]]:
    """The orders service over HTTP, and the service itself; the validating ones are not there."""
    kafka.create_topic("orders", partitions=2)
    kafka.create_topic("payments", partitions=2)
    with (
        closing(shop["search"].Index(kafka.bootstrap_servers)) as index,
        closing(shop["service"].OrdersService(kafka.bootstrap_servers, "127.0.0.1:0", index)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client, service


def test_who_asks_for_an_order_waits_until_it_is_there_and_until_it_is_decided_on(
    site: tuple[httpx.Client, Any],
) -> None:
    client, service = site
    posted = {name: value for name, value in order("o1").items() if name != "state"}
    with ThreadPoolExecutor(2) as pool:
        seen = pool.submit(client.get, "/v1/orders/o1", params={"timeout_ms": 25_000})
        answer = client.post("/v1/orders", json=posted)
        assert (answer.status_code, answer.headers["Location"]) == (201, "/v1/orders/o1")
        assert seen.result().json() == order("o1")
        early = client.get("/v1/orders/o1/validated", params={"timeout_ms": 200})
        assert early.status_code == 504, early.text
        decided = pool.submit(client.get, "/v1/orders/o1/validated", params={"timeout_ms": 25_000})
        service.write("orders", "o1", order("o1", state="VALIDATED"))
        assert decided.result().json() == order("o1", state="VALIDATED")


def test_the_search_finds_validated_orders_once_and_no_others(site: tuple[httpx.Client, Any]) -> None:
    client, service = site
    for id, state in (("o1", "CREATED"), ("o1", "VALIDATED"), ("o1", "VALIDATED"), ("o2", "CREATED"), ("o3", "FAILED")):
        service.write("orders", id, order(id, state=state))
    service.write("orders", "o4", order("o4", state="VALIDATED", product="red ink"))

    def found(words: str) -> list[str]:
        return [one["id"] for one in client.get("/v1/search", params={"q": words}).json()]

    eventually(lambda: found("ann") == ["o1", "o4"], what="orders of Ann")
    assert found("ann ink") == ["o4"]
    assert found("o2") == found("o3") == found("") == found('"') == []


REFUSED = (
    ("POST", "/v1/orders", b"{", 400),
    ("POST", "/v1/orders", b'{"id": "o1"}', 422),
    ("POST", "/v1/payments", b'{"order": "o1", "amount": "much"}', 422),
    ("GET", "/v1/orders/o1?timeout_ms=soon", None, 422),
    ("GET", "/v1/nothing", None, 404),
)


def test_what_is_asked_wrongly_is_refused(site: tuple[httpx.Client, Any]) -> None:
    client, _ = site
    found = [client.request(method, path, content=body).status_code for method, path, body, _ in REFUSED]
    assert found == [status for *_, status in REFUSED]


def test_the_load_has_orders_of_all_kinds(shop: dict[str, Any], wired: Wired) -> None:
    wired.send("warehouse-inventory", "book", 1_000, 1)
    made = list(shop["load"].orders(60))
    for number, (one, _) in enumerate(made):
        wired.send("orders", one["id"], {**one, "state": "CREATED"}, 100 + number)
    expected = Counter("VALIDATED" if right else "FAILED" for _, right in made)
    assert Counter(states(wired, one["id"])[1] for one, _ in made) == expected
    assert all(len(states(wired, one["id"])) == 2 for one, _ in made)
    assert len(expected) == 2

"""The two applications of the demonstration, with the test driver."""

from __future__ import annotations

import pytest

from moldau.demo import applications
from moldau.demo.topics import CLICKS, CLICKS_PER_PAGE, CUSTOMERS, ORDERS, ORDERS_ENRICHED
from moldau.serdes.registry import Registry
from moldau.streams import TopologyTestDriver


@pytest.fixture
def settings() -> dict[str, object]:
    registry = Registry.connect({"schema.registry.url": "mock://demo"})
    return {"schema.registry.url": registry, "statestore.cache.max.bytes": 0}


def test_clicks_are_counted_by_page_in_windows_of_ten_seconds(settings: dict[str, object]) -> None:
    with TopologyTestDriver(applications.page_clicks(), settings) as running:
        clicks = running.create_input_topic(CLICKS.name)
        for at, page in ((1_000, "/"), (2_000, "/bow"), (9_000, "/"), (11_000, "/")):
            clicks.pipe_input("c001", {"customer": "c001", "page": page, "at": at}, timestamp=at)
        found = running.create_output_topic(CLICKS_PER_PAGE.name).read_key_values_to_list()
    counts = [(page, value["since"].second, value["clicks"]) for page, value in found]
    assert counts == [("/", 0, 1), ("/bow", 0, 1), ("/", 0, 2), ("/", 10, 1)]


def test_orders_know_their_customer(settings: dict[str, object]) -> None:
    order = {"id": "o1", "customer": "c001", "product": "bow", "quantity": 1, "amount": 119.0, "at": 5}
    with TopologyTestDriver(applications.enriched_orders(), settings) as running:
        customer = {"id": "c001", "name": "Ada Kafka", "city": "Praha", "level": "Gold"}
        running.create_input_topic(CUSTOMERS.name).pipe_input("c001", customer, timestamp=1)
        orders = running.create_input_topic(ORDERS.name)
        orders.pipe_input("c001", order, timestamp=5)
        orders.pipe_input("c999", order, timestamp=6)
        known, unknown = running.create_output_topic(ORDERS_ENRICHED.name).read_values_to_list()
    assert (known["id"], known["name"], known["level"], known["amount"]) == ("o1", "Ada Kafka", "Gold", 119.0)
    assert unknown["name"] == "unknown"

"""The two applications of the demonstration, with the test driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.admin import topics
from moldau.admin.topics import NewTopic
from moldau.client import Client
from moldau.demo import applications
from moldau.demo.topics import CLICKS, CLICKS_PER_PAGE, CUSTOMERS, ORDERS, ORDERS_ENRICHED, TOPICS
from moldau.flows import catalog
from moldau.flows.definition import Definition
from moldau.flows.loading import builder_of
from moldau.serdes.registry import Registry
from moldau.streams import TopologyTestDriver
from moldau.testing import Broker


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


@pytest.mark.parametrize("file", applications.APPLICATIONS)
def test_a_worker_makes_the_same_application_of_the_deployed_file(file: str) -> None:
    made = builder_of(str(Path(applications.__file__).with_name(file))).build()
    assert made.describe() == applications.APPLICATIONS[file]().build().describe()


def test_both_are_deployed_once_and_wait_for_a_worker(kafka: Broker) -> None:
    servers = kafka.bootstrap_servers
    with Client({"bootstrap.servers": servers}) as client:
        topics.create(client, [NewTopic(topic.name, 1) for topic in TOPICS])
        for _ in range(2):
            assert applications.deploy(servers, "mock://demo") == [applications.NO_WORKER]
        known = catalog.read(client)
    assert {name: flow.revision for name, flow in known.items() if isinstance(flow, Definition)} == {
        "page-clicks": 1,
        "enriched-orders": 1,
    }
    flow = known["page-clicks"]
    assert isinstance(flow, Definition) and "page-clicks-clicks-per-page-changelog" in flow.topics
    assert flow.settings == {"schema.registry.url": "mock://demo"}, "nothing that needs a lane of its own"

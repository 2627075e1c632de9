"""A small cluster with something in it, and its console, as the tests of pages look at it in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client import Client, check, group
from moldau.client import messages as m
from moldau.testing import Broker
from tests.services import Service, cluster

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
FIRST = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
SECOND = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"},'
    ' {"name": "amount", "type": "double", "default": 0}]}'
)
RECORDS, READ = 10, 4
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
WAIT_S = 60


@dataclass(frozen=True, slots=True)
class Shop:
    """The topics orders (10 records, 4 of them read by billing) and bills, which the application biller makes of
    orders and whose store totals has three keys; two versions of orders-value.
    """

    kafka: Broker
    registry: Service
    console: Service
    visitors: Service


@contextmanager
def opened() -> Iterator[Shop]:
    """All parts, for the length of a `with`. `visitors` is a second console that is read-only."""
    with cluster(AUTHORIZER) as kafka:
        registry = Service("registry", "--bootstrap-servers", kafka.bootstrap_servers, "--listen", "127.0.0.1:0")
        places = ("--bootstrap-servers", kafka.bootstrap_servers, "--schema-registry", registry.url)
        patient = ("-X", "schema.registry.timeout=600")  # a test lets the registry stand still
        console = Service("console", *places, "--listen", "127.0.0.1:0", *patient)
        visitors = Service("console", *places, "--listen", "127.0.0.1:0", "--read-only")
        try:
            fill(kafka, registry)
            yield Shop(kafka, registry, console, visitors)
        finally:
            for part in (visitors, console, registry):
                part.stop()


def fill(kafka: Broker, registry: Service) -> None:
    kafka.create_topic("orders")
    kafka.create_topic("bills")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce("orders", f"order {number}")
    producer.flush(WAIT_S)
    commit(kafka, "billing", READ)
    commit(kafka, "biller", RECORDS)
    bill(kafka)
    total(kafka)
    count(kafka)
    for schema in (FIRST, SECOND):
        answer = registry.http.post("/subjects/orders-value/versions", json={"schema": schema})
        assert answer.is_success, answer.text


def commit(kafka: Broker, group: str, offset: int) -> None:
    """What a group has read, without a member."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def count(kafka: Broker) -> None:
    """As an application of Kafka Streams joins its group (KIP-1071)."""
    changelog = m.StreamsGroupHeartbeatRequest_TopicInfo("counter-counts-changelog", 0, 1, [])
    part = m.StreamsGroupHeartbeatRequest_Subtopology("0", ["orders"], state_changelog_topics=[changelog])
    topology = m.StreamsGroupHeartbeatRequest_Topology(0, [part])
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joins = m.StreamsGroupHeartbeatRequest(
        "counter", "a-member", 0, 0, rebalance_timeout_ms=60_000, topology=topology, process_id="p", **tasks
    )
    client = Client({"bootstrap.servers": kafka.bootstrap_servers})
    check(client.send(joins, group("counter")))
    client.close()


def total(kafka: Broker) -> None:
    """What a store of the application biller has, in its changelog."""
    kafka.create_topic("biller-totals-changelog")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, number in {"ann": 2, "bob": 2, HOSTILE: 1}.items():
        producer.produce("biller-totals-changelog", number.to_bytes(8, "big"), key)
    producer.flush(WAIT_S)


def bill(kafka: Broker) -> None:
    """As a flow of Moldau's writes."""
    writer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "moldau-sink-biller-0"})
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce("bills", "a bill")
    writer.commit_transaction(WAIT_S)

"""The broker that a test of the client runs on: Moldau, and Apache Kafka where its jars are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Client, check
from moldau.testing import broker
from moldau.wire import messages as m
from tests import needs
from tests.client.apache import Apache, apache_kafka


@pytest.fixture(scope="session")
def moldau_servers() -> Iterator[str]:
    quick = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}
    small = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
    with broker({**quick, **small}) as started:
        yield started.bootstrap_servers


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apache]:
    """Apache Kafka; whoever takes it says that it needs java and kafka-jars."""
    found = needs.find("kafka-jars")
    assert found.path is not None, found.reason
    with apache_kafka(found.path, tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


APACHE = pytest.param("apache", marks=pytest.mark.needs("java", "kafka-jars"))


@pytest.fixture(scope="session", params=["moldau", APACHE])
def servers(request: pytest.FixtureRequest) -> str:
    """`bootstrap.servers` of either broker: a test that takes it runs on both."""
    if request.param == "moldau":
        return request.getfixturevalue("moldau_servers")
    return request.getfixturevalue("apache").bootstrap_servers


@pytest.fixture
def client(servers: str) -> Iterator[Client]:
    with Client({"bootstrap.servers": servers, "heartbeat.interval.ms": 100, "session.timeout.ms": 6000}) as made:
        yield made


@pytest.fixture
def new_topic(client: Client, tmp_path: Path) -> Callable[..., str]:
    """Makes topics that no other test has."""
    made = iter(range(100))

    def make(partitions: int = 1, **configs: Any) -> str:
        name = f"t-{tmp_path.parent.parent.name}-{tmp_path.name}-{next(made)}"
        rows = [
            m.CreateTopicsRequest_CreatableTopicConfig(key.replace("_", "."), str(value))
            for key, value in configs.items()
        ]
        topic = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, configs=rows)
        check(client.send(m.CreateTopicsRequest([topic], 10_000)))
        return name

    return make

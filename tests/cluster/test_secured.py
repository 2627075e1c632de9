"""Three nodes that talk to each other, and to clients, over SASL_SSL alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from moldau.client import CONTROLLER, Client, ClientError, check
from moldau.testing.clusters import Cluster, cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.authentication.secured import Secured, plain_line

SESSION_MS = 2000
PASSWORDS = {"node": "node-secret", "ada": "ada-secret"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(Path(tmp_path_factory.mktemp("secured")))


@pytest.fixture(scope="module")
def nodes(secured: Secured) -> Iterator[Cluster]:
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "ssl.keystore.location": f"{secured.folder}/broker.pem",
        "ssl.truststore.location": f"{secured.folder}/ca.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.jaas.config": plain_line(PASSWORDS, username="node", password=PASSWORDS["node"]),
        "connections.max.reauth.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node",
        "offsets.topic.num.partitions": "2",
    }
    with cluster(3, settings, proxied=False) as nodes:
        yield nodes


def client(nodes: Cluster, secured: Secured, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": nodes.bootstrap_servers,
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(secured.folder / "ca.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


def test_records_are_replicated_while_sessions_end_and_begin(nodes: Cluster, secured: Secured) -> None:
    settings = client(nodes, secured, "node")
    with Client(settings) as asking:
        wanted = [m.CreateTopicsRequest_CreatableTopic("t", 1, 3)]
        check(asking.send(m.CreateTopicsRequest(wanted), CONTROLLER))
    errors: list[Any] = []
    producer = confluent_kafka.Producer({**settings, "acks": "all"})
    begin, count = time.monotonic(), 0
    while time.monotonic() < begin + 3 * SESSION_MS / 1000:
        producer.produce("t", str(count).encode(), on_delivery=lambda error, _: errors.append(error))
        producer.poll(0.05)
        count += 1
    assert producer.flush(60) == 0 and set(errors) == {None}
    with Client(settings) as asking:
        request = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="t")])
        (topic,) = asking.send(request).topics
        assert sorted(topic.partitions[0].isr_nodes) == [1, 2, 3]


def test_a_change_through_another_node_knows_its_client(nodes: Cluster, secured: Secured) -> None:
    """Requests that are forwarded to the controller are decided for the client, not for the node that forwards."""
    with Client(client(nodes, secured, "ada")) as asking:
        for node in nodes.brokers:
            wanted = [m.CreateTopicsRequest_CreatableTopic("mine", 1, 3)]
            (row,) = asking.send(m.CreateTopicsRequest(wanted), node).topics
            assert Error(row.error_code) is Error.TOPIC_AUTHORIZATION_FAILED


def test_nobody_registers_without_a_password(nodes: Cluster, secured: Secured) -> None:
    settings = {**client(nodes, secured, "node"), "sasl.password": "wrong", "retries": 0}
    with Client(settings) as asking, pytest.raises(ClientError) as caught:
        asking.send(m.DescribeClusterRequest(), timeout_s=20)
    assert caught.value.error is Error.SASL_AUTHENTICATION_FAILED
    assert all("secret" not in broker.log for broker in nodes.brokers.values())

"""Clients and tools that ask controllers instead of brokers (KIP-919), on three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.admin import clusters, configs
from moldau.admin.configs import Kind, Resource
from moldau.client import Client, ClientError
from moldau.settings import SettingError
from moldau.testing import Cluster, cluster
from moldau.wire.errors import Error
from tests.cli.kafka.running import Done, run

NODES = (1, 2, 3)


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(3) as made:
        yield made


@pytest.fixture(scope="module")
def controllers(three: Cluster) -> str:
    return ",".join(three[node].settings["listeners"].partition("CONTROLLER://")[2] for node in NODES)


def play(tool: str, controllers: str, *words: str) -> Done:
    flag = ("--bootstrap-controller", controllers)
    return run(tool, *((*words, *flag) if tool == "kafka-cluster" else (*flag, *words)))


def test_a_client_of_controllers_learns_of_them_and_not_of_topics(controllers: str) -> None:
    with Client({"bootstrap.controllers": controllers}) as client:
        known = client.refresh()
        assert set(known.brokers) == set(NODES) and known.controller == clusters.quorum(client).leader
        assert [one.id for one in clusters.described(client).brokers] == list(NODES)
        with pytest.raises(ClientError) as refused:
            client.topic("t")
        assert refused.value.error is Error.UNSUPPORTED_ENDPOINT_TYPE
    with pytest.raises(SettingError, match="a client asks one of both"):
        Client({"bootstrap.controllers": "a:1", "bootstrap.servers": "a:1"})


def test_every_controller_answers_for_its_own_settings_and_for_no_others(controllers: str) -> None:
    with Client({"bootstrap.controllers": controllers}) as client:
        for node in NODES:
            (entry,) = configs.described(client, Resource(Kind.BROKER, str(node)), ["node.id"])
            assert entry.value == str(node)
        other = configs.m.DescribeConfigsRequest_DescribeConfigsResource(Kind.BROKER, "1")
        answer = client.send(configs.m.DescribeConfigsRequest([other]), 2)
        assert answer.results[0].error_code == Error.INVALID_REQUEST


def test_tools_tell_of_the_cluster_what_they_tell_through_brokers(three: Cluster, controllers: str) -> None:
    brokers = ("--bootstrap-server", three.bootstrap_servers)
    status = play("kafka-metadata-quorum", controllers, "describe", "--status")
    assert status.code == 0 and status.out.count("CONTROLLER://") == len(NODES)
    assert play("kafka-features", controllers, "describe").out.count("Feature: ") == 8
    assert play("kafka-cluster", controllers, "cluster-id") == run("kafka-cluster", "cluster-id", *brokers)
    listed = play("kafka-cluster", controllers, "list-endpoints").lines()
    assert [line.split()[0] for line in listed] == ["ID", "1", "2", "3"] and listed[1].split()[-1] == "controller"
    assert play("kafka-cluster", controllers, "list-endpoints", "--include-fenced-brokers").code == 1
    assert play("kafka-reassign-partitions", controllers, "--list").out == "No partition reassignments found.\n"


def test_addresses_in_a_file_of_settings_give_way_to_those_of_the_command_line(
    controllers: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nbootstrap.controllers=127.0.0.1:1\n")
    assert play("kafka-cluster", controllers, "cluster-id", "--command-config", str(file)).code == 0


def test_every_controller_changes_its_own_loggers(controllers: str) -> None:
    for node in map(str, NODES):
        who = ("--entity-type", "broker-loggers", "--entity-name", node)
        changed = play("kafka-configs", controllers, "--alter", *who, "--add-config", "moldau.broker.quorum=DEBUG")
        assert changed.out == f"Completed updating config for broker-logger {node}.\n", changed
        assert "moldau.broker.quorum=DEBUG" in play("kafka-configs", controllers, "--describe", *who).out


def test_settings_of_brokers_are_changed_through_a_controller(three: Cluster, controllers: str) -> None:
    """Whichever of them is the active one."""
    for node in map(str, NODES):
        who = ("--entity-type", "brokers", "--entity-name", node)
        changed = play("kafka-configs", controllers, "--alter", *who, "--add-config", "message.max.bytes=2000000")
        assert changed.out == f"Completed updating config for broker {node}.\n"
        with Client({"bootstrap.servers": three.bootstrap_servers}) as client:
            (entry,) = configs.described(client, Resource(Kind.BROKER, node), ["message.max.bytes"])
            assert entry.value == "2000000"
        assert "message.max.bytes=2000000" in play("kafka-configs", controllers, "--describe", *who).out

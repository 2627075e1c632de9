"""Where the metadata log cannot be had, a sentence says why. It is read in tests/cluster/test_commands.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from moldau.admin import clusters
from moldau.admin.metadata_log import MetadataLog
from moldau.admin.mistakes import Mistake
from moldau.client import Client
from moldau.console.timeline import Timeline
from moldau.testing import Broker
from moldau.testing.ports import free_ports


@pytest.fixture
def client(kafka_shared: Broker) -> Iterator[Client]:
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as made:
        yield made


def test_a_broker_that_is_alone_does_not_hand_it_out_and_has_no_time_line(client: Client) -> None:
    with pytest.raises(Mistake, match="does not hand out the metadata log"):
        MetadataLog(client, 100).read()
    assert Timeline(client).read() == []


@pytest.mark.parametrize(("listeners", "sentence"), [(1, "cannot be reached from here"), (0, "do not say where")])
def test_a_controller_that_cannot_be_reached_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch, listeners: int, sentence: str
) -> None:
    known = clusters.quorum(client)
    where = tuple(f"CONTROLLER://127.0.0.1:{port}" for port in free_ports(listeners))
    monkeypatch.setattr(clusters, "quorum", lambda _: replace(known, endpoints={known.leader: where}))
    with pytest.raises(Mistake, match=sentence):
        MetadataLog(client, 100).read()

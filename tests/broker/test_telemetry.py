"""Telemetry of clients (KIP-714): subscriptions, intervals, limits and counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from moldau.broker import telemetry
from moldau.broker.connection import Connection
from moldau.machines.metadata.cluster import CLIENT_METRICS
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import IDS, Client, World

NO_ID = bytes(16)
INTERVAL_MS = 300_000
TOO_EARLY = Error.THROTTLING_QUOTA_EXCEEDED


@dataclass
class Pushing:
    """A broker that takes telemetry, and a client of it."""

    world: World

    def subscribe(self, name: str, **settings: str | None) -> int:
        """Set what is given, remove what is None."""
        rows = [
            m.IncrementalAlterConfigsRequest_AlterableConfig(key.replace("_", "."), 1 if value is None else 0, value)
            for key, value in settings.items()
        ]
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(CLIENT_METRICS, name, rows)
        return self.world.call(m.IncrementalAlterConfigsRequest([resource])).responses[0].error_code

    def get(self, instance_id: bytes = NO_ID, client: Client | None = None) -> Any:
        return (client or self.world.client).call(m.GetTelemetrySubscriptionsRequest(instance_id))

    def push(
        self, got: Any, metrics: bytes = b"m", terminating: bool = False, subscription: int = 0, compression: int = 0
    ) -> int:
        asked = subscription or got.subscription_id
        request = m.PushTelemetryRequest(got.client_instance_id, asked, terminating, compression, metrics)
        return self.world.call(request).error_code

    @property
    def counts(self) -> tuple[int, int]:
        return self.world.node.telemetry.pushes, self.world.node.telemetry.pushed_bytes


@pytest.fixture
def pushing(make_world: Callable[..., World]) -> Pushing:
    return Pushing(make_world(moldau_telemetry="true"))


def test_without_a_subscription_nothing_is_wanted(pushing: Pushing):
    got = pushing.get()
    assert (got.error_code, got.requested_metrics, got.push_interval_ms) == (0, [], INTERVAL_MS)
    assert got.client_instance_id != NO_ID and got.delta_temporality
    assert (got.accepted_compression_types, got.telemetry_max_bytes) == ([4, 3, 1, 2], 1 << 20)


def test_an_instance_keeps_its_id(pushing: Pushing):
    assert pushing.get(b"i" * 16).client_instance_id == b"i" * 16


def test_subscriptions_that_match_are_summed(pushing: Pushing):
    pushing.subscribe("a", metrics="org.x,org.y", interval_ms="60000")
    pushing.subscribe("b", metrics="org.z,org.x", interval_ms="1000", match="client_id=te.t,client_source_port=.*")
    pushing.subscribe("c", metrics="other", interval_ms="100", match="client_software_name=nobody")
    got = pushing.get()
    assert (got.requested_metrics, got.push_interval_ms) == (["org.x", "org.y", "org.z"], 1000)
    pushing.subscribe("d", metrics="*")
    assert pushing.get(got.client_instance_id).requested_metrics == ["*"]


@pytest.mark.parametrize(
    "pattern",
    [
        "client_id=test",
        "client_software_name=librdkafka",
        "client_software_version=2\\..*",
        "client_source_address=127\\.0\\.0\\.1",
        "client_source_port=40000",
        "client_instance_id=aWlpaWlpaWlpaWlpaWlpaQ",
    ],
)
def test_a_client_is_known_by_each_of_its_traits(pushing: Pushing, pattern: str):
    client = Client(pushing.world.node, Connection(next(IDS), peer="127.0.0.1:40000"))
    client.call(m.ApiVersionsRequest("librdkafka", "2.1"))
    pushing.subscribe("yes", metrics="yes", match=pattern)
    pushing.subscribe("no", metrics="no", match=pattern + "x")
    assert pushing.get(b"i" * 16, client).requested_metrics == ["yes"]


def test_a_client_that_asks_again_too_early_is_slowed(pushing: Pushing):
    first = pushing.get()
    assert pushing.get(first.client_instance_id).error_code == TOO_EARLY
    pushing.world.advance(INTERVAL_MS)
    assert pushing.get(first.client_instance_id) == first


def test_what_is_pushed_is_counted(pushing: Pushing):
    got = pushing.get()
    assert pushing.push(got, b"12345") == 0
    assert pushing.counts == (1, 5)
    assert pushing.push(got, b"678") == TOO_EARLY
    pushing.world.advance(INTERVAL_MS)
    assert pushing.push(got, b"678", compression=4) == 0
    assert pushing.counts == (2, 8)
    pushing.world.advance(INTERVAL_MS)
    assert pushing.push(got, b"") == 0
    assert pushing.counts == (2, 8)


def test_the_last_push_may_come_early_and_is_the_last(pushing: Pushing):
    got = pushing.get()
    assert [pushing.push(got), pushing.push(got, terminating=True), pushing.push(got, terminating=True)] == [
        0,
        0,
        Error.INVALID_REQUEST,
    ]


def test_a_changed_subscription_is_told_at_once(pushing: Pushing):
    got = pushing.get()
    pushing.subscribe("a", metrics="org.x")
    assert pushing.push(got) == Error.UNKNOWN_SUBSCRIPTION_ID
    again = pushing.get(got.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ["org.x"])
    assert again.subscription_id != got.subscription_id
    assert pushing.push(again) == TOO_EARLY  # the refused push has counted, as in Kafka
    pushing.world.advance(INTERVAL_MS)
    assert pushing.push(again) == 0


@pytest.mark.parametrize("compression", [-1, 5])
def test_a_codec_that_nobody_knows_is_refused(pushing: Pushing, compression: int):
    got = pushing.get()
    assert pushing.push(got, compression=compression) == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert pushing.get(got.client_instance_id) == got


def test_too_much_at_once_is_refused(make_world: Callable[..., World]):
    pushing = Pushing(make_world(moldau_telemetry="true", telemetry_max_bytes="10"))
    got = pushing.get()
    assert pushing.push(got, b"x" * 11) == Error.TELEMETRY_TOO_LARGE
    assert pushing.counts == (0, 0)
    assert pushing.world.node.telemetry.refused == {"TELEMETRY_TOO_LARGE": 1}


@pytest.mark.parametrize("number", [0, 1])
def test_reserved_ids_push_nothing(pushing: Pushing, number: int):
    got = m.GetTelemetrySubscriptionsResponse(client_instance_id=number.to_bytes(16), subscription_id=1)
    assert pushing.push(got) == Error.INVALID_REQUEST


def test_a_client_that_is_not_known_may_push_if_it_knows_the_subscription(pushing: Pushing):
    got = pushing.get()
    pushing.world.restart()
    assert pushing.push(got) == 0


def test_clients_are_forgotten_when_they_are_silent_or_too_many(pushing: Pushing, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(telemetry, "INSTANCES_MAX", 3)
    for number in range(5):
        pushing.get(bytes([1] * 15 + [number]))
    known = pushing.world.node.telemetry
    assert [key[-1] for key in known.instances] == [2, 3, 4]
    assert known.living(pushing.world.clock.monotonic_ms()) == 3
    pushing.world.advance(3 * INTERVAL_MS)
    assert known.living(pushing.world.clock.monotonic_ms()) == 0


def test_the_interval_has_bounds(pushing: Pushing):
    assert [pushing.subscribe("a", interval_ms=text) for text in ("99", "3600001", "100")] == [
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
        0,
    ]

"""Quotas: who is over the limit is told so, muted for that long, and counted with the others of the same entity."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.api.produce_one import Appends
from moldau.broker.metrics import QUOTAS
from moldau.broker.quotas import MOST_THROTTLED
from moldau.machines.metadata.metering import Limit
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import Client, World
from tests.client.records import batch

SIZE = 1000
NEWEST = 13


@pytest.fixture
def limited(make_world: Callable[..., World]) -> World:
    world = make_world(num_partitions="1")
    world.clock.now_ms = time.time() * 1000  # the records are of today
    world.create("t")
    return world


def set_quota(world: World, key: str, value: float | None, **entity: str | None) -> None:
    parts = [m.AlterClientQuotasRequest_EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    change = m.AlterClientQuotasRequest_OpData(key, value or 0.0, value is None)
    (row,) = world.call(m.AlterClientQuotasRequest([m.AlterClientQuotasRequest_EntryData(parts, [change])])).entries
    assert row.error_code == 0, row.error_message


def user(world: World, name: str) -> Client:
    client = Client(world.node)
    client.connection.principal = f"User:{name}"
    return client


def produce(client: Client, size: int = SIZE) -> Any:
    records = batch(["x" * size])
    partition = m.ProduceRequest_PartitionProduceData(0, records)
    topic = m.ProduceRequest_TopicProduceData("t", partition_data=[partition])
    return client.call(m.ProduceRequest(None, 1, 1000, [topic]), 9)


def fetch(client: Client, session: tuple[int, int] = (0, -1)) -> Any:
    partition = m.FetchRequest_FetchPartition(0, -1, 0, -1, -1, 1 << 20)
    topic = m.FetchRequest_FetchTopic(topic="t", partitions=[partition])
    request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])
    request.session_id, request.session_epoch = session
    return client.call(request, 12)


def test_without_quotas_nothing_is_measured(limited: World) -> None:
    assert limited.node.quotas is None and "receive" not in vars(limited.node)
    set_quota(limited, "producer_byte_rate", 1.0, user="u")
    assert limited.node.quotas is not None
    set_quota(limited, "producer_byte_rate", None, user="u")
    assert limited.node.quotas is None and "receive" not in vars(limited.node)
    assert produce(user(limited, "u")).throttle_time_ms == 0


def test_a_producer_over_its_rate_is_told_and_muted(limited: World) -> None:
    set_quota(limited, "producer_byte_rate", 200.0, user="u")
    client = user(limited, "u")
    assert produce(client).throttle_time_ms == 0
    told = produce(client, 3 * SIZE)
    assert told.responses[0].partition_responses[0].error_code == 0
    assert 8_000 < told.throttle_time_ms < 14_000  # about 4,200 bytes where 2,000 fit into ten seconds
    assert not client.connection.takes(b"\0\0") and not client.connection.takes(b"\0\x03")
    limited.advance(told.throttle_time_ms - 1)
    assert client.connection.pending
    limited.advance(2)
    assert not client.connection.pending and client.connection.takes(b"\0\0")


def test_who_is_throttled_is_counted_and_only_so_many_are(limited: World) -> None:
    set_quota(limited, "producer_byte_rate", 1.0, user=None)
    told = 0
    for number in range(MOST_THROTTLED + 3):
        told = produce(user(limited, f"u{number}")).throttle_time_ms
    quotas = limited.node.quotas
    assert quotas is not None and len(quotas.throttled) == MOST_THROTTLED
    count, throttle_ms = quotas.throttled["producer_byte_rate", f"u{MOST_THROTTLED + 2}", ""]
    assert count == 1 and int(throttle_ms) == told > 0
    server = SimpleNamespace(node=limited.node)
    rows: dict[str, Any] = {row.name: dict(cast(Any, row.read(cast(Any, server)))) for row in QUOTAS}
    of_last = ("producer_byte_rate", f"u{MOST_THROTTLED + 2}", "")
    assert rows["moldau_throttled_requests_total"][of_last] == 1
    assert rows["moldau_throttle_seconds_total"][of_last] == throttle_ms / 1000


def test_users_have_a_rate_each_and_their_connections_share_it(limited: World) -> None:
    set_quota(limited, "producer_byte_rate", 200.0, user=None)
    assert produce(user(limited, "one"), 1500).throttle_time_ms == 0
    assert produce(user(limited, "two"), 1500).throttle_time_ms == 0
    assert produce(user(limited, "one"), 1500).throttle_time_ms > 0


def test_requests_that_are_known_by_their_head_count_too(limited: World) -> None:
    client = user(limited, "u")
    for _ in range(5):
        assert produce(client).throttle_time_ms == 0
    set_quota(limited, "producer_byte_rate", 200.0, user="u")
    assert sum(produce(user(limited, "u")).throttle_time_ms > 0 for _ in range(5)) >= 3


def test_a_quota_that_is_not_reached_leaves_requests_known_by_their_head(
    limited: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_quota(limited, "producer_byte_rate", 1e9, user="u")
    set_quota(limited, "request_percentage", 100.0, user="u")
    client, served, serve = user(limited, "u"), list[Any](), Appends.serve
    monkeypatch.setattr(Appends, "serve", lambda *given: served.append(serve(*given)) or served[-1])
    for _ in range(3):
        produce(client)
    assert len(served) >= 2 and all(served)


def test_known_requests_take_as_much_of_a_quota_as_others(limited: World) -> None:
    def throttled(connect: Callable[[], Client]) -> list[int]:
        told = [0]
        while not told[-1]:
            told.append(produce(connect()).throttle_time_ms)
        return told

    for name in ("known", "new"):
        set_quota(limited, "producer_byte_rate", 900.0, user=name)
    known = user(limited, "known")
    told = throttled(lambda: known)
    assert len(told) > 5 and told == throttled(lambda: user(limited, "new"))


def test_a_rate_that_is_forgotten_leaves_nobody_with_one_of_its_own(
    limited: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moldau.broker.quotas.ENTITIES", 2)
    set_quota(limited, "producer_byte_rate", 100 * SIZE, user=None)
    ann = [user(limited, "ann") for _ in range(2)]
    produce(ann[0])
    produce(ann[0])  # by its head
    for name in ("bob", "eve"):
        produce(user(limited, name))
    for client in ann:  # one that knew the old rate, and one that never did
        produce(client)
    assert limited.node.quotas is not None
    rate = limited.node.quotas.rate("producer_byte_rate", Limit(100.0 * SIZE, "ann", None))
    assert rate.record(0, limited.node.clock.monotonic_ms()) == 2 * len(batch(["x" * SIZE]))


def test_a_quota_that_is_changed_counts_at_once(limited: World) -> None:
    client = user(limited, "u")
    set_quota(limited, "producer_byte_rate", 1e9, user="u")
    assert not any(produce(client).throttle_time_ms for _ in range(10))
    set_quota(limited, "producer_byte_rate", 10.0, user="u")
    assert produce(client).throttle_time_ms


def test_a_consumer_over_its_rate_is_answered_empty_and_not_counted(limited: World) -> None:
    for _ in range(3):
        produce(limited.client)
    set_quota(limited, "consumer_byte_rate", 200.0, user="u")
    client = user(limited, "u")
    first = fetch(client)
    size = len(first.responses[0].partitions[0].records)
    assert first.throttle_time_ms == 0 and size > 1000
    throttled = fetch(client)
    assert throttled.throttle_time_ms > 0 and throttled.responses == []
    assert client.connection.pending
    limited.advance(throttled.throttle_time_ms)
    assert not client.connection.pending
    again = fetch(client)
    assert again.throttle_time_ms <= throttled.throttle_time_ms


def test_a_batch_that_is_larger_than_the_quota_allows_arrives_nevertheless(limited: World) -> None:
    produce(limited.client, 5000)
    set_quota(limited, "consumer_byte_rate", 1.0, user="u")
    assert len(fetch(user(limited, "u")).responses[0].partitions[0].records) > 5000


def test_others_are_not_affected(limited: World) -> None:
    set_quota(limited, "producer_byte_rate", 1.0, user="u")
    set_quota(limited, "consumer_byte_rate", 1.0, user="u")
    other = user(limited, "other")
    for _ in range(5):
        assert produce(other, 9000).throttle_time_ms == 0 and fetch(other).throttle_time_ms == 0
        assert fetch(other).responses


def create(client: Client, name: str, partitions: int, version: int) -> Any:
    row = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1)
    return client.call(m.CreateTopicsRequest([row]), version)


def test_changes_take_from_a_bucket_as_in_kafka(limited: World) -> None:
    set_quota(limited, "controller_mutation_rate", 1.0, user="u")
    first = create(user(limited, "u"), "a", 20, 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)  # the next one is refused
    limited.advance(50)
    strict = create(user(limited, "u"), "b", 20, 7)
    assert Error(strict.topics[0].error_code) is Error.THROTTLING_QUOTA_EXCEEDED
    assert strict.throttle_time_ms == 8950 and "b" not in limited.node.cluster.topics
    lenient = create(user(limited, "u"), "b", 20, 5)
    assert (lenient.topics[0].error_code, lenient.throttle_time_ms) == (0, 28_950)
    assert "b" in limited.node.cluster.topics


def test_a_request_that_empties_the_bucket_is_done_up_to_there(limited: World) -> None:
    set_quota(limited, "controller_mutation_rate", 1.0, user="u")
    rows = [m.CreateTopicsRequest_CreatableTopic(name, 20, 1) for name in ("a", "b")]
    answer = user(limited, "u").call(m.CreateTopicsRequest(rows), 7)
    errors = {row.name: Error(row.error_code) for row in answer.topics}
    assert errors == {"a": Error.NONE, "b": Error.THROTTLING_QUOTA_EXCEEDED}


def test_a_client_whose_requests_take_too_long_is_throttled(limited: World) -> None:
    set_quota(limited, "request_percentage", 1.0, user="u")
    client, node = user(limited, "u"), limited.node
    assert node.quotas is not None
    limit = node.quotas.limit("request_percentage", client.connection)
    assert limit is not None
    node.quotas.rate("request_percentage", limit).record(100.0, limited.clock.monotonic_ms())  # a whole second
    answer = client.call(m.MetadataRequest([]), 9)
    assert answer.throttle_time_ms == 1000  # at most a window
    assert client.connection.pending


def test_addresses_have_a_rate_of_new_connections(limited: World) -> None:
    assert limited.node.ip_limit("127.0.0.1") is None
    set_quota(limited, "connection_creation_rate", 7.0, ip=None)
    set_quota(limited, "connection_creation_rate", 5.0, ip="127.0.0.1")
    assert (limited.node.ip_limit("127.0.0.1"), limited.node.ip_limit("10.0.0.1")) == (5.0, 7.0)
    assert limited.node.quotas is None

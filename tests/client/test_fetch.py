"""Raw fetching, on both brokers: many partitions, sessions, aborted transactions, offsets and topics that are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import Client, ClientError, Fetcher, TransactionalProducer, check, produce
from moldau.client.fetch_session import FetchSession, Key, Want
from moldau.testing import Broker, eventually
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import records
from tests.client.fake import Fake
from tests.client.records import batch, read
from tests.client.test_client import QUICK


def delete(client: Client, topic: str) -> None:
    check(client.send(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState(topic)], timeout_ms=10_000)))


def create(client: Client, topic: str) -> None:
    row = m.CreateTopicsRequest_CreatableTopic(topic, 1, 1)
    eventually(lambda: not client.send(m.CreateTopicsRequest([row], 10_000)).topics[0].error_code)


def test_all_partitions_come_in_one_round(client: Client, new_topic: Callable[..., str]) -> None:
    topic, other = new_topic(3), new_topic()
    for partition in range(3):
        produce(client, topic, partition, batch([f"v{partition}"]))
    produce(client, other, 0, batch(["w"]))
    wanted = {(topic, 0): 0, (topic, 1): 0, (topic, 2): 0, (other, 0): 0}
    found = Fetcher(client).fetch(wanted)
    assert set(found) == set(wanted)
    values = {key: [r.value for one in part.batches() for r in records(one)] for key, part in found.items()}
    assert values == {(topic, 0): [b"v0"], (topic, 1): [b"v1"], (topic, 2): [b"v2"], (other, 0): [b"w"]}
    assert all(part.high_watermark == part.last_stable_offset == 1 for part in found.values())


def test_an_empty_partition_is_waited_for(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    part = Fetcher(client).fetch({(topic, 0): 0}, max_wait_ms=50)[topic, 0]
    assert (part.error, list(part.batches()), part.log_start_offset) == (Error.NONE, [], 0)


def test_a_batch_that_was_cut_is_left_for_the_next_round(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    for value in "abc":
        produce(client, topic, 0, batch([value * 500]))
    part = Fetcher(client).fetch({(topic, 0): 0}, max_partition_bytes=800)[topic, 0]
    assert [one.base_offset for one in part.batches()] == [0]
    assert read(client, topic) == [value * 500 for value in "abc"]


def test_an_offset_that_is_not_there_is_told(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    found = Fetcher(client).fetch({(topic, 0): 99})
    assert found[topic, 0].error is Error.OFFSET_OUT_OF_RANGE


def test_one_partition_that_does_not_exist_does_not_stop_the_others(
    client: Client, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    produce(client, topic, 0, batch(["a"]))
    found = Fetcher(client).fetch({(topic, 0): 0, (topic, 7): 0, ("nowhere", 0): 0})
    assert found[topic, 0].error is Error.NONE
    assert found[topic, 7].error is found["nowhere", 0].error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_nothing_but_topics_that_do_not_exist_is_an_error_in_time(servers: str) -> None:
    settings = {"bootstrap.servers": servers, "topic.metadata.propagation.max.ms": 100}
    with Client(settings) as client, pytest.raises(ClientError, match="nowhere-0"):
        Fetcher(client).fetch({("nowhere", 0): 0})


@pytest.mark.parametrize("sessions", [False, True])
def test_a_topic_made_again_is_not_taken_for_the_old_one(
    client: Client, new_topic: Callable[..., str], sessions: bool
) -> None:
    topic, other = new_topic(), new_topic()
    fetcher = Fetcher(client, sessions=sessions)
    fetcher.fetch({(topic, 0): 0, (other, 0): 0}, max_wait_ms=0)
    delete(client, topic)
    create(client, topic)
    produce(client, topic, 0, batch(["new"]))

    def told() -> bool:
        produce(client, other, 0, batch(["x"]))  # so that there is something to tell
        found = fetcher.fetch({(topic, 0): 0, (other, 0): 0}, max_wait_ms=0)
        assert not found.get((topic, 0)) or not list(found[topic, 0].batches())
        return (topic, 0) in found and found[topic, 0].error is Error.INCONSISTENT_TOPIC_ID

    eventually(told)


def test_an_id_from_before_is_held_to(client: Client, new_topic: Callable[..., str]) -> None:
    topic, other = new_topic(), new_topic()
    found = Fetcher(client, topic_ids={topic: b"x" * 16}).fetch({(topic, 0): 0, (other, 0): 0}, max_wait_ms=0)
    assert found[topic, 0].error is Error.INCONSISTENT_TOPIC_ID


def test_a_session_tells_only_news(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    for partition in (0, 1):  # so that the broker knows both: Apache Kafka may hear late of the second
        produce(client, topic, partition, batch(["a"]))
    fetcher = Fetcher(client, sessions=True)
    assert set(fetcher.fetch({(topic, 0): 0, (topic, 1): 0})) == {(topic, 0), (topic, 1)}
    assert fetcher.fetch({(topic, 0): 1, (topic, 1): 1}, max_wait_ms=10) == {}
    produce(client, topic, 1, batch(["b"]))
    assert set(fetcher.fetch({(topic, 0): 1, (topic, 1): 1})) == {(topic, 1)}
    assert fetcher.fetch({(topic, 0): 1}, max_wait_ms=10) == {}


def test_a_session_that_the_broker_lost_is_begun_anew(kafka: Broker) -> None:
    topic = kafka.create_topic()
    with Client({"bootstrap.servers": kafka.bootstrap_servers, **QUICK}) as client:
        fetcher = Fetcher(client, sessions=True)
        fetcher.fetch({(topic, 0): 0}, max_wait_ms=0)
        kafka.restart()
        produce(client, topic, 0, batch(["a"]))
        found = eventually(lambda: fetcher.fetch({(topic, 0): 0}))
        assert [one.count for one in found[topic, 0].batches()] == [1]


def test_aborted_transactions_are_named_and_left_out(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    writer = TransactionalProducer(client, f"writer of {topic}")
    for round_, commit in enumerate((True, False, True, False, False)):
        writer.send(topic, 0, batch([f"{round_}a"]))
        writer.send(topic, 0, batch([f"{round_}b", f"{round_}c"]))
        writer.flush()
        produce(client, topic, 0, batch([f"plain {round_}"]))
        writer.commit() if commit else writer.abort()
    writer.close()
    fetcher = Fetcher(client)
    eventually(lambda: len(fetcher.fetch({(topic, 0): 0})[topic, 0].aborted) == 3, what="the last marker")
    plain = [f"plain {number}" for number in range(5)]
    assert read(client, topic) == [
        "0a", "0b", "0c", plain[0], plain[1], "2a", "2b", "2c", *plain[2:],
    ]  # fmt: skip
    assert len(read(client, topic, isolation_level="read_uncommitted")) == 20


def test_an_open_transaction_is_the_end_of_what_is_committed(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    writer = TransactionalProducer(client, f"writer of {topic}")
    produce(client, topic, 0, batch(["before"]))
    writer.send(topic, 0, batch(["open"]))
    writer.flush()
    produce(client, topic, 0, batch(["behind"]))
    assert read(client, topic) == ["before"]
    assert read(client, topic, isolation_level="read_uncommitted") == ["before", "open", "behind"]
    writer.commit()
    writer.close()
    eventually(lambda: read(client, topic) == ["before", "open", "behind"])


def row(error: int = 0, **more: Any) -> Any:
    return m.FetchResponse_PartitionData(partition_index=0, error_code=error, records=b"", **more)


def answer_of(*rows: Any, session: int = 0) -> Any:
    return m.FetchResponse(session_id=session, responses=[m.FetchResponse_FetchableTopicResponse("t", b"i" * 16, rows)])


def test_a_leader_that_moved_is_followed() -> None:
    def metadata() -> Any:
        moved = any(r.SCHEMA.key == 1 for r in first.seen)
        return first.metadata("t", *((2, 1) if moved else (1, 0)), others={2: second.port})

    def answer(moved: int) -> Callable[[Any], Any]:
        return lambda r: metadata() if r.SCHEMA.key == 3 else answer_of(row(moved, high_watermark=5))

    with (
        Fake(answer(0)) as second,
        Fake(answer(Error.NOT_LEADER_OR_FOLLOWER)) as first,
        Client({"bootstrap.servers": first.address, **QUICK}) as client,
    ):
        assert Fetcher(client).fetch({("t", 0): 0})["t", 0].high_watermark == 5


def test_a_replica_nearby_is_read_once_the_leader_says_so() -> None:
    def answer(here: Any) -> Callable[[Any], Any]:
        metadata = lambda: first.metadata("t", 1, 0, others={2: second.port})  # noqa: E731
        return lambda r: metadata() if r.SCHEMA.key == 3 else answer_of(here)

    near = answer(row(high_watermark=9))
    with (
        Fake(near) as second,
        Fake(answer(row(preferred_read_replica=2, high_watermark=1))) as first,
        Client({"bootstrap.servers": first.address, "client.rack": "r", **QUICK}) as client,
    ):
        fetcher = Fetcher(client)
        assert [fetcher.fetch({("t", 0): 0})["t", 0].high_watermark for _ in range(3)] == [1, 9, 9]
        assert {r.rack_id for r in second.seen if r.SCHEMA.key == 1} == {"r"}


def test_brokers_that_know_no_ids_are_told_names() -> None:
    def answer(request: Any) -> Any:
        return fake.metadata("t") if request.SCHEMA.key == 3 else answer_of(row(high_watermark=3))

    with Fake(answer, {3: (0, 9), 1: (4, 11)}) as fake, Client({"bootstrap.servers": fake.address}) as client:
        assert Fetcher(client).fetch({("t", 0): 0})["t", 0].high_watermark == 3


WANT = Want(0, 0, 100)
A, B = Key("a", b"1" * 16, 0), Key("b", b"2" * 16, 0)


def test_a_session_says_all_first_and_then_what_changes() -> None:
    session = FetchSession()
    assert session.changes({A: WANT, B: WANT}) == ({A: WANT, B: WANT}, [])
    session.answered(7)
    assert (session.id, session.epoch) == (7, 1)
    assert session.changes({A: WANT, B: WANT._replace(offset=5)}) == ({B: WANT._replace(offset=5)}, [])
    session.answered(7)
    assert session.changes({A: WANT}) == ({}, [B])
    assert session.epoch == 2


def test_a_topic_made_anew_is_another_one_to_a_session() -> None:
    session, again = FetchSession(), A._replace(topic_id=b"3" * 16)
    session.changes({A: WANT})
    session.answered(7)
    assert session.changes({again: WANT}) == ({again: WANT}, [A])


def test_a_broker_without_room_for_sessions_is_told_all_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        assert session.changes({A: WANT}) == ({A: WANT}, [])
        session.answered(0)


def test_a_session_in_doubt_is_ended_and_begun_anew() -> None:
    session = FetchSession()
    session.changes({A: WANT})
    session.answered(7)
    session.begin_anew(unknown=False)
    assert (session.id, session.epoch, session.changes({A: WANT})) == (7, 0, ({A: WANT}, []))
    session.begin_anew(unknown=True)
    assert session.id == 0

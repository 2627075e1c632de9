"""Transactions: list them, describe them, find who writes to a partition, and abort one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.admin import TopicPartition, by_topic
from moldau.client import Client, ClientError, Error, Leader, Node, check, transaction
from moldau.client import messages as m

NOTHING = -1


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id as its coordinator lists it."""

    id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transactional id; `start_ms` is -1 while no transaction is open."""

    id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer that a partition knows; `start_offset` is where its open transaction begins, -1 if it has none."""

    id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    start_offset: int


def listed(
    client: Client,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    duration_ms: int = NOTHING,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """List all transactional ids by name, from all coordinators."""
    request = m.ListTransactionsRequest(list(states), list(producer_ids), duration_ms, pattern)
    found = [
        ListedTransaction(row.transactional_id, broker, row.producer_id, row.transaction_state)
        for broker, answer in client.send_to_each(request).items()
        for row in check(answer).transaction_states
    ]
    return sorted(found, key=lambda one: one.id)


def described(client: Client, name: str) -> DescribedTransaction:
    """Describe a transactional id; ClientError where there is none."""
    answer = client.send(m.DescribeTransactionsRequest([name]), transaction(name))
    row = answer.transaction_states[0]
    if row.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND:
        raise ClientError(Error.TRANSACTIONAL_ID_NOT_FOUND, f"There is no transactional id {name}.", retriable=False)
    check(answer)
    places = tuple(sorted((topic.topic, part) for topic in row.topics for part in topic.partitions))
    producer, times = (row.producer_id, row.producer_epoch), (row.transaction_timeout_ms, row.transaction_start_time_ms)
    return DescribedTransaction(row.transactional_id, row.transaction_state, *producer, *times, places)


def producers(client: Client, place: TopicPartition) -> list[Producer]:
    """List the producers that the leader of a partition knows."""
    topic, partition = place
    request = m.DescribeProducersRequest([m.DescribeProducersRequest_TopicRequest(topic, [partition])])
    answer = check(client.send(request, Leader(topic, partition)))
    return [
        Producer(
            row.producer_id,
            row.producer_epoch,
            row.last_sequence,
            row.last_timestamp,
            row.coordinator_epoch,
            row.current_txn_start_offset,
        )
        for row in answer.topics[0].partitions[0].active_producers
    ]


def writers(client: Client, places: Mapping[TopicPartition, int]) -> dict[str, set[int]]:
    """Return the ids of the producers that leaders know, by topic; `places` says who leads each partition."""
    found: dict[str, set[int]] = {}
    for leader in sorted(set(places.values())):
        mine = by_topic([place for place, broker in places.items() if broker == leader])
        topics = [m.DescribeProducersRequest_TopicRequest(topic, parts) for topic, parts in mine.items()]
        for topic in client.send(m.DescribeProducersRequest(topics), Node(leader)).topics:
            ids = {row.producer_id for part in topic.partitions for row in part.active_producers}
            found.setdefault(topic.name, set()).update(ids)
    return found


def terminate(client: Client, name: str) -> None:
    """Abort what is open under an id, and fence its producer: asking for a new epoch does both."""
    check(client.send(m.InitProducerIdRequest(name, described(client, name).timeout_ms), transaction(name)))


def abort(client: Client, place: TopicPartition, producer: Producer) -> None:
    """Write the marker that ends a hanging transaction in one partition, which no coordinator knows of any more."""
    topics = [m.WriteTxnMarkersRequest_WritableTxnMarkerTopic(place[0], [place[1]])]
    epoch = max(0, producer.coordinator_epoch)
    marker = m.WriteTxnMarkersRequest_WritableTxnMarker(producer.id, producer.epoch, False, topics, epoch)
    check(client.send(m.WriteTxnMarkersRequest([marker]), Leader(*place)))

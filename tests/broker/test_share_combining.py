"""Questions to a share coordinator on another broker: what is asked while one is under way goes out in one request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moldau.broker.outbox import Lost, Peer
from moldau.broker.share import combining
from moldau.broker.share.combining import Combined, Home
from moldau.broker.steps import start
from moldau.machines.effects import Promise
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ONE, TWO = b"1" * 16, b"2" * 16
READ = m.ReadShareGroupStateRequest, m.ReadShareGroupStateRequest_ReadStateData
SUMMARY = m.ReadShareGroupStateSummaryRequest, m.ReadShareGroupStateSummaryRequest_ReadStateSummaryData
HOME = Home(2, "g")


class Far:
    """A node, and the coordinator that it asks: it answers when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Promise]] = []
        self.replication = SimpleNamespace(address_of=lambda broker: Peer("far", 9092, "peer") if broker == 2 else None)

    def call(self, peer: Peer, request: Any) -> Promise:
        self.sent.append((request, Promise(lambda error: Lost(error.message))))
        return self.sent[-1][1]

    def signal(self, *_: object) -> None:
        pass

    def answer(self, number: int) -> None:
        """Answer each partition of a request, with an offset that tells which one it was."""
        request, promise = self.sent[number]
        promise.resolve(
            m.ReadShareGroupStateResponse(
                [
                    m.ReadShareGroupStateResponse_ReadStateResult(
                        topic.topic_id,
                        [
                            m.ReadShareGroupStateResponse_PartitionResult(
                                part.partition, start_offset=offset(topic, part)
                            )
                            for part in reversed(topic.partitions)
                        ],
                    )
                    for topic in request.topics
                ]
            )
        )

    def asked(self, number: int) -> list[tuple[bytes, int]]:
        return [(topic.topic_id, part.partition) for topic in self.sent[number][0].topics for part in topic.partitions]


def offset(topic: Any, part: Any) -> int:
    return topic.topic_id[0] * 1000 + part.partition


async def asking(combined: Combined, home: Home, classes: Any, topic_id: bytes, index: int) -> Any:
    try:
        row = await combined.ask(home, classes, topic_id, m.ReadShareGroupStateRequest_PartitionData(index, 0))
        return row.partition, row.start_offset
    except Refused as refused:
        return refused.error


def ask(node: Any, combined: Combined, topic_id: bytes, index: int, home: Home = HOME, classes: Any = READ) -> Promise:
    return start(node, asking(combined, home, classes, topic_id, index))


def test_what_is_asked_meanwhile_goes_out_together() -> None:
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    answers = [ask(node, combined, topic, index) for topic in (ONE, TWO) for index in range(3)]
    assert [node.asked(0), len(node.sent)] == [[(ONE, 0)], 1]
    node.answer(0)
    assert node.asked(1) == [(ONE, 1), (ONE, 2), (TWO, 0), (TWO, 1), (TWO, 2)]
    node.answer(1)
    assert [one.answer for one in answers] == [(i, topic[0] * 1000 + i) for topic in (ONE, TWO) for i in range(3)]
    assert not combined.queues and len(node.sent) == 2


def test_other_groups_do_not_wait() -> None:
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    for home in (HOME, HOME._replace(group="h")):
        ask(node, combined, ONE, 0, home)
    assert [request.group_id for request, _ in node.sent] == ["g", "h"]


def test_a_later_request_of_another_api_does_not_overtake() -> None:
    """It would read what was before a write that was asked for first."""
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    for classes in (READ, READ, SUMMARY, READ):
        ask(node, combined, ONE, len(node.sent), classes=classes)
    for number in range(4):
        node.answer(number)
    assert [type(request) for request, _ in node.sent] == [READ[0], READ[0], SUMMARY[0], READ[0]]


def test_a_partition_that_is_asked_about_twice_is_answered_twice() -> None:
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    answers = [ask(node, combined, ONE, index) for index in (7, 0, 1, 0)]
    for number, expected in enumerate(([(ONE, 7)], [(ONE, 0), (ONE, 1)], [(ONE, 0)])):
        assert node.asked(number) == expected
        node.answer(number)
    assert all(one.answer for one in answers)


def test_a_request_has_its_largest_size(monkeypatch: Any) -> None:
    monkeypatch.setattr(combining, "AT_ONCE", 2)
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    for index in range(6):
        ask(node, combined, ONE, index)
    for number in range(4):
        node.answer(number)
    assert [len(node.asked(number)) for number in range(4)] == [1, 2, 2, 1]


def test_a_coordinator_that_is_lost_or_unknown_is_not_available() -> None:
    node = Far()
    combined = Combined(node)  # type: ignore[arg-type]
    first, second = ask(node, combined, ONE, 0), ask(node, combined, ONE, 1)
    node.sent[0][1].resolve(Lost("gone"))
    assert first.answer is Error.COORDINATOR_NOT_AVAILABLE and second.answer is None
    node.sent[1][1].resolve(m.ReadShareGroupStateResponse([]))
    assert second.answer is Error.COORDINATOR_NOT_AVAILABLE
    assert ask(node, combined, ONE, 0, HOME._replace(leader=3)).answer is Error.COORDINATOR_NOT_AVAILABLE

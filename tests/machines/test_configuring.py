"""Topologies on the topics that there are: partitions of internal topics, and what is told if they do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.machines.streams.configuring import Configured, Status, configure
from moldau.machines.streams.topology import input_topics, is_same, record_of, required_topics
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.streamers import WORDS, part, topology

INCORRECT = Status.INCORRECTLY_PARTITIONED_TOPICS


def configured(told: Any, **topics: int) -> Configured:
    return configure(record_of(told), topics.get)


def partitions(result: Configured) -> dict[str, int]:
    return {topic.name: topic.partitions for one in result.subtopologies.values() for topic in one.internal()}


def problem(result: Configured) -> tuple[Status, str]:
    assert result.problem is not None and not result.is_ready
    return result.problem


def test_internal_topics_are_as_wide_as_what_feeds_them():
    result = configured(WORDS, lines=3)
    assert partitions(result) == {"words": 3, "counts": 3}
    assert problem(result) == (Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: counts, words")
    assert [topic.name for topic in result.missing] == ["counts", "words"]
    assert [(name, one.tasks, one.is_stateful) for name, one in result.subtopologies.items()] == [
        ("0", 3, False),
        ("1", 3, True),
    ]


def test_a_topology_whose_topics_are_there_is_ready():
    result = configured(WORDS, lines=3, words=3, counts=3)
    assert result.is_ready and not result.missing


def test_missing_source_topics_are_told_three_of_them_by_name():
    result = configured(topology(part("0", "d", "b", "a", "c", "e")), e=1)
    assert problem(result) == (
        Status.MISSING_SOURCE_TOPICS,
        "Source topics a, b, c and 1 additional topics are missing.",
    )
    assert not result.subtopologies


def test_a_repartition_topic_may_ask_for_its_partitions():
    asks = topology(part("0", "lines", sinks=["words"]), part("1", reads=[("words", 7)], changelogs=["counts"]))
    assert partitions(configured(asks, lines=3)) == {"words": 7, "counts": 7}


def test_widths_pass_through_chains_whatever_the_order_of_subtopologies():
    chain = topology(
        part("2", reads=["second"], changelogs=["store"]),
        part("1", reads=["first"], sinks=["second"]),
        part("0", "a", "b", sinks=["first"]),
    )
    assert partitions(configured(chain, a=2, b=5)) == {"first": 5, "second": 5, "store": 5}


def test_loops_and_topics_that_nobody_writes_are_refused():
    loop = topology(part("0", reads=["one"], sinks=["two"]), part("1", reads=["two"], sinks=["one"]))
    unwritten = topology(part("0", "a"), part("1", reads=["words"]))
    for wrong in (loop, unwritten, topology(part("0"))):
        with pytest.raises(Refused) as refused:
            configured(wrong, a=1)
        assert refused.value.error == Error.STREAMS_INVALID_TOPOLOGY


def test_what_is_read_together_with_a_topic_gets_its_partitions():
    join = topology(part("0", "lines", sinks=["words"]), part("1", "users", reads=["words"], together=[([0], [0])]))
    assert partitions(configured(join, lines=3, users=8)) == {"words": 8}


def test_repartition_topics_that_are_read_together_get_the_most_of_them_or_the_number_one_asks_for():
    def joined(*reads: Any) -> Any:
        return topology(
            part("0", "a", sinks=["x"]), part("1", "b", sinks=["y"]), part("2", reads=reads, together=[([], [0, 1])])
        )

    assert partitions(configured(joined("x", "y"), a=2, b=4)) == {"x": 4, "y": 4}
    assert partitions(configured(joined(("x", 3), "y"), a=2, b=4)) == {"x": 3, "y": 3}
    assert problem(configured(joined(("x", 3), ("y", 5)), a=2, b=4)) == (
        INCORRECT,
        "Following topics do not have the same number of partitions: [{x=3, y=5}]",
    )


def test_sources_that_are_read_together_must_have_the_same_number():
    join = topology(part("0", "a", "b", together=[([0, 1], [])]))
    assert configured(join, a=2, b=2).is_ready
    assert problem(configured(join, b=3, a=2)) == (
        INCORRECT,
        "Following topics do not have the same number of partitions: [{a=2, b=3}]",
    )


def test_a_repartition_topic_that_asks_for_another_number_than_its_source_does_not_fit():
    join = topology(part("0", "a", sinks=["x"]), part("1", "b", reads=[("x", 3)], together=[([0], [0])]))
    status, why = problem(configured(join, a=2, b=4))
    assert status == INCORRECT and why.startswith("Number of partitions [3] of repartition topic [x]")


def test_an_internal_topic_that_exists_must_have_the_right_number():
    assert problem(configured(WORDS, lines=3, words=3, counts=2)) == (
        INCORRECT,
        "Existing topic counts has different number of partitions: expected 3, found 2",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        topology(part("0", "a"), epoch=-1),
        topology(part("0", "a"), part("0", "b")),
        topology(part("0", "a", together=[([1], [])])),
        topology(part("0", "a", together=[([], [0])])),
    ],
)
def test_a_topology_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(Refused) as refused:
        record_of(wrong)
    assert refused.value.error == Error.STREAMS_INVALID_TOPOLOGY


def test_the_order_of_subtopologies_does_not_matter():
    one, two = part("0", "a"), part("1", "b")
    assert is_same(record_of(topology(one, two)), record_of(topology(two, one)))
    assert not is_same(record_of(topology(one, two)), record_of(topology(one)))
    assert not is_same(record_of(topology(one)), record_of(topology(one, epoch=1)))


def test_a_topology_names_what_it_reads_and_what_it_needs():
    record = record_of(WORDS)
    assert input_topics(record) == {"lines": "0", "words": "1"}
    assert required_topics(record) == {"lines", "words", "counts"}

"""Topics as lists and forms have them."""

from __future__ import annotations

import pytest

from moldau.admin.groups import Committed
from moldau.admin.topics import PartitionState, TopicState
from moldau.console.model.problems import Refused
from moldau.console.model.topics import TopicRow, choose, new_topic, readings, rows, settings_of, with_sizes


def state(name: str, partitions: int = 1, isr: tuple[int, ...] = (1,)) -> TopicState:
    parts = tuple(PartitionState(index, 1, 0, (1,), isr) for index in range(partitions))
    return TopicState(name, bytes(16), False, parts)


def test_rows_have_sizes_of_all_replicas() -> None:
    listed = rows([state("a", 2), state("_b", isr=())], {"a": 2.5})
    assert listed[0].size is None
    found = with_sizes(listed, {("a", 0): {1: 5, 2: 5}, ("a", 1): {1: 1}})
    assert [(one.size, one.rate, one.internal, one.is_well) for one in found] == [
        (11, 2.5, False, True),
        (0, None, True, False),
    ]


def test_a_list_is_searched_sorted_and_cut() -> None:
    known = [TopicRow(f"orders-{n:05}", n, 1, n == 7, True, n) for n in range(10_000)]
    assert choose(known, "", False, "name", 0, 50).found == 9999
    assert choose(known, "ORD 00042", True, "name", 0, 50).rows == [known[42]]
    assert choose(known, "", True, "size", 0, 3).rows == known[:-4:-1]
    last = choose(known, "", True, "name", 10**9, 50)
    assert (last.page, last.pages) == (199, 200) and last.rows[-1] is known[-1]
    assert choose([], "x", True, "no such", -1, 50).pages == 1


def test_a_form_makes_a_topic_or_says_what_is_wrong() -> None:
    made = new_topic(" orders ", 3.0, None, "retention.ms=1\n\ncleanup.policy=compact")
    assert (made.name, made.partitions, made.replication_factor) == ("orders", 3, -1)
    assert made.configs == {"retention.ms": "1", "cleanup.policy": "compact"}
    for name, text in (("", ""), ("x" * 250, ""), ("a", "no setting")):
        with pytest.raises(Refused):
            new_topic(name, None, None, text)
    with pytest.raises(Refused, match="characters"):
        settings_of("x" * 100_000)


def test_readers_of_a_topic_are_those_with_offsets_in_it() -> None:
    committed = {"g": {("t", 0): Committed(3), ("u", 0): Committed(1)}, "h": {("u", 0): Committed(1)}}
    [one] = readings("t", committed, {("t", 0): 10, ("u", 0): 10})
    assert (one.group, one.partitions, one.lag) == ("g", 1, 7)

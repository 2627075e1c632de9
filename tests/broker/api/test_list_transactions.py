"""ListTransactions and DescribeTransactions: what the tools see of transactional ids."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.transactional import Transactional


@pytest.fixture
def busy(make_world):
    """An id of each kind: one that is new, one with an open transaction, one that has committed."""
    world = make_world(transaction_state_log_num_partitions="2")
    world.create("t", 2)
    Transactional(world, "new").begin()
    Transactional(world, "open").begin().send("t", b"a", index=1)
    done = Transactional(world, "done").begin()
    done.send("t", b"a")
    done.end()
    world.clock.now_ms += 1000
    return world


def names(world, **filters):
    answer = world.call(m.ListTransactionsRequest(**filters))
    assert answer.error_code == 0
    return sorted(row.transactional_id for row in answer.transaction_states)


def test_all_are_listed_with_their_states(busy):
    rows = busy.call(m.ListTransactionsRequest()).transaction_states
    assert {row.transactional_id: row.transaction_state for row in rows} == {
        "new": "Empty",
        "open": "Ongoing",
        "done": "CompleteCommit",
    }


def test_filters_go_together(busy):
    assert names(busy, state_filters=["Ongoing", "Empty"]) == ["new", "open"]
    assert names(busy, producer_id_filters=[0, 99]) == ["new"]
    assert names(busy, state_filters=["Ongoing"], producer_id_filters=[0]) == []
    assert names(busy, transactional_id_pattern="[no].*") == ["new", "open"]
    assert names(busy, transactional_id_pattern="pe") == [], "the whole id must match"
    assert names(busy, duration_filter=999, state_filters=["Ongoing"]) == ["open"]
    assert names(busy, duration_filter=1000, state_filters=["Ongoing"]) == []


def test_what_nobody_knows_is_told(busy):
    answer = busy.call(m.ListTransactionsRequest(["Ongoing", "nope"]))
    assert answer.unknown_state_filters == ["nope"] and len(answer.transaction_states) == 1
    assert names(busy, state_filters=["nope"]) == []
    wrong = busy.call(m.ListTransactionsRequest(transactional_id_pattern="("))
    assert wrong.error_code == Error.INVALID_REGULAR_EXPRESSION


def test_a_transaction_is_described_with_its_partitions(busy):
    asked = m.DescribeTransactionsRequest(["open", "", "nobody"])
    found, empty, unknown = busy.call(asked).transaction_states
    assert (found.transaction_state, found.transaction_timeout_ms, found.producer_epoch) == ("Ongoing", 60_000, 0)
    assert found.transaction_start_time_ms == busy.clock.wall_ms() - 1000
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [1])]
    assert (empty.error_code, unknown.error_code) == (Error.INVALID_REQUEST, Error.TRANSACTIONAL_ID_NOT_FOUND)


def test_before_there_are_transactions_there_is_nothing_to_list(world):
    assert names(world) == []

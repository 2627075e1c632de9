"""With flush.messages=1 what a coordinator has answered survives lost power, be it a setting of the topic or of all."""

from __future__ import annotations

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.shares import Member, initialize
from tests.broker.shares import produce as produce_shared
from tests.broker.test_coordinators import commit, fetch
from tests.broker.test_storage import SimWorld
from tests.broker.transactional import Transactional, read

FEW = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
}
SEEDS = range(4)  # of what is lost


def synced() -> SimWorld:
    world = SimWorld(log_flush_interval_messages="1", **FEW)
    world.coordinate()
    world.create("t")
    return world


def sync_topic(world: SimWorld, name: str) -> None:
    row = m.IncrementalAlterConfigsRequest_AlterableConfig("flush.messages", 0, "1")
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(2, name, [row])
    assert world.call(m.IncrementalAlterConfigsRequest([resource])).responses[0].error_code == Error.NONE


@pytest.mark.parametrize("seed", SEEDS)
def test_committed_offsets_survive_lost_power_where_their_topic_is_synced(seed: int):
    world = SimWorld(**FEW)
    world.coordinate()
    world.create("t")
    sync_topic(world, "__consumer_offsets")
    for offset in range(1, 5):  # the first is answered at length, the others by what was learnt of it
        assert commit(world, "g", offset, metadata="") == Error.NONE
    world.lose_power(seed)
    assert fetch(world, "g") == (Error.NONE, [4])


@pytest.mark.parametrize("seed", SEEDS)
def test_ended_transactions_survive_lost_power_with_their_markers(seed: int):
    world = synced()
    producer = Transactional(world, "x").begin()
    for value in (b"a", b"b"):
        assert producer.send("t", value) is Error.NONE
        assert producer.end() is Error.NONE
    world.lose_power(seed)
    assert read(world, "t") == [b"a", b"b"]


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledgements_of_share_groups_survive_lost_power(seed: int):
    world = synced()
    produce_shared(world, b"a", b"b", b"c")
    initialize(world)
    member = Member(world)
    assert member.acquire() == [(0, 2, 1)]
    assert member.settle((0, 1, [1])) == Error.NONE
    world.lose_power(seed)
    assert Member(world).acquire() == [(2, 2, 1)]


def test_an_answer_whose_sync_failed_is_a_refusal():
    world = synced()
    assert commit(world, "g", 1) == Error.NONE
    world.machine.broken.add("/data/__consumer_offsets-0")
    assert commit(world, "g", 2) == Error.NOT_COORDINATOR
    assert fetch(world, "g")[0] == Error.NOT_COORDINATOR


def test_nothing_is_synced_for_an_answer_by_default():
    world = SimWorld(**FEW)
    world.coordinate()
    world.create("t")
    assert commit(world, "g", 1) == Error.NONE
    assert world.log_of("__consumer_offsets").recovery_point == 0

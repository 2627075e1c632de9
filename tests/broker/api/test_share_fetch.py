"""ShareFetch and ShareAcknowledge: sessions, locks, settling, waiting, and what outlives a crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.log.answers import Origin
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build, end_txn_marker
from tests.broker.conftest import Client, World
from tests.broker.shares import Member, acquired, id_of, initialize, produce, set_group, values

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LOCK_MS = 30_000
FINAL = -1


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return ready(make_world())


def ready(world: World) -> World:
    """A topic with ten records in one batch, and a group that begins with the first."""
    world.create("t", partitions=2)
    produce(world, *(b"%d" % place for place in range(10)))
    initialize(world, 0, 1)
    return world


def error_of(response: Any) -> int:
    return response.error_code or response.responses[0].partitions[0].error_code


def test_records_are_acquired_and_come_as_they_lie_in_the_log(world: World) -> None:
    answer = Member(world).fetch([0])
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert acquired(answer) == [(0, 9, 1)]
    assert values(answer)[3] == b"3"
    assert Member(world, "b").acquire() == []


def test_what_is_accepted_or_rejected_does_not_come_again(world: World) -> None:
    member = Member(world)
    member.acquire()
    assert member.settle((0, 4, [ACCEPT]), (5, 9, [REJECT])) == Error.NONE
    world.advance(LOCK_MS + 1)
    assert member.acquire() == []
    produce(world, b"more")
    assert member.acquire() == [(10, 10, 1)]


def test_what_is_released_comes_again(world: World) -> None:
    member = Member(world)
    member.acquire()
    answer = member.fetch(said={0: [(0, 1, [RELEASE]), (2, 9, [ACCEPT])]})
    assert acquired(answer) == [(0, 1, 2)]


def test_lock_ends_with_its_time(world: World) -> None:
    Member(world).acquire()
    other = Member(world, "b")
    other.send([0], max_wait_ms=2 * LOCK_MS)
    world.advance(LOCK_MS - 1)
    assert other.client.take() is None
    world.advance(1)
    assert acquired(other.client.take()) == [(0, 9, 2)]


def test_node_knows_when_the_next_lock_ends(world: World) -> None:
    assert world.node.share_partitions.deadline_ms > world.clock.monotonic_ms() + LOCK_MS
    Member(world).acquire()
    assert world.node.share_partitions.deadline_ms == world.clock.monotonic_ms() + LOCK_MS


def test_lock_is_renewed(world: World) -> None:
    member = Member(world)
    member.acquire()
    world.advance(LOCK_MS - 1)
    assert member.settle((0, 9, [RENEW]), renews=True) == Error.NONE
    world.advance(LOCK_MS - 1)
    fields = {"max_records": 0, "max_bytes": 0, "min_bytes": 0, "is_renew_ack": True}
    answer = member.fetch(said={0: [(0, 9, [RENEW])]}, **fields)
    assert answer.responses[0].partitions[0].acknowledge_error_code == Error.NONE
    world.advance(LOCK_MS - 1)
    assert Member(world, "b").acquire() == []


def test_fetch_that_renews_asks_for_nothing_else(world: World) -> None:
    member = Member(world)
    member.acquire()
    assert member.fetch(is_renew_ack=True).error_code == Error.INVALID_REQUEST


def test_group_may_forbid_to_renew(world: World) -> None:
    set_group(world, share_renew_acknowledge_enable="false")
    member = Member(world)
    member.acquire()
    assert member.settle((0, 9, [RENEW]), renews=True) == Error.INVALID_RECORD_STATE


def test_fetch_waits_for_records(world: World) -> None:
    member = Member(world)
    member.acquire()
    member.send(max_wait_ms=1000)
    assert member.client.take() is None
    produce(world, b"new")
    assert acquired(member.client.take()) == [(10, 10, 1)]


def test_fetch_waits_for_enough_bytes_but_not_for_ever(world: World) -> None:
    member = Member(world)
    member.send([0], max_wait_ms=1000, min_bytes=10_000)
    assert member.client.take() is None
    world.advance(1000)
    assert acquired(member.client.take()) == [(0, 9, 1)]


def test_fetch_waits_for_records_that_others_release(world: World) -> None:
    one, other = Member(world), Member(world, "b")
    one.acquire()
    other.send([0], max_wait_ms=1000)
    one.settle((3, 4, [RELEASE]))
    assert acquired(other.client.take()) == [(3, 4, 2)]


def test_connection_that_closes_lets_go_of_its_records(world: World) -> None:
    one, other = Member(world), Member(world, "b")
    one.acquire()
    other.send([0], max_wait_ms=1000)
    world.node.disconnect(one.client.connection)
    assert acquired(other.client.take()) == [(0, 9, 2)]
    one.client = Client(world.node)
    assert one.fetch().error_code == Error.SHARE_SESSION_NOT_FOUND


def test_group_without_sessions_takes_no_memory(world: World) -> None:
    one, other = Member(world), Member(world, "b")
    one.acquire()
    other.acquire()
    world.node.disconnect(one.client.connection)
    assert len(world.node.share_partitions.known) == 1
    world.node.disconnect(other.client.connection)
    assert world.node.share_partitions.known == {}


def test_member_that_leaves_settles_at_last_and_lets_go(world: World) -> None:
    member = Member(world)
    member.acquire()
    answer = member.fetch(said={0: [(0, 4, [ACCEPT])]}, epoch=FINAL)
    assert [row.partition_index for row in answer.responses[0].partitions] == [0]
    assert acquired(answer) == []
    assert member.fetch(epoch=3).error_code == Error.SHARE_SESSION_NOT_FOUND
    again = Member(world, "b")
    assert again.acquire() == [(5, 9, 2)]
    assert again.settle((5, 5, [ACCEPT]), epoch=FINAL) == Error.NONE
    assert Member(world, "c").acquire() == [(6, 9, 3)]


def test_session_tells_of_all_partitions_at_first_and_then_of_news(world: World) -> None:
    member = Member(world)
    first = member.fetch([0, 1])
    assert sorted(row.partition_index for row in first.responses[0].partitions) == [0, 1]
    assert list(member.fetch().responses) == []
    produce(world, b"x", partition=1)
    news = member.fetch()
    assert [row.partition_index for row in news.responses[0].partitions] == [1]


def test_forgotten_partitions_are_not_fetched(world: World) -> None:
    member = Member(world)
    member.fetch([1])
    forgotten = [m.ShareFetchRequest_ForgottenTopic(id_of(world), [1])]
    assert member.acquire([0], forgotten_topics_data=forgotten) == [(0, 9, 1)]
    produce(world, b"x", partition=1)
    assert list(member.fetch().responses) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": 2}, Error.INVALID_SHARE_SESSION_EPOCH),
        ({"epoch": -2}, Error.INVALID_SHARE_SESSION_EPOCH),
        ({"share_acquire_mode": 7}, Error.INVALID_REQUEST),
        ({"epoch": 0, "said": {0: [(0, 0, [ACCEPT])]}}, Error.INVALID_REQUEST),
    ],
)
def test_nonsense_is_refused(world: World, fields: dict[str, Any], error: Error) -> None:
    member = Member(world)
    member.fetch([0])
    assert member.fetch(**fields).error_code == error


@pytest.mark.parametrize(("group", "member"), [(None, "a"), ("g", None), ("g", ""), ("g", "x" * 37)])
def test_request_without_a_group_or_member_is_refused(world: World, group: str | None, member: str | None) -> None:
    assert world.call(m.ShareFetchRequest(group, member, 0)).error_code == Error.INVALID_REQUEST
    assert world.call(m.ShareAcknowledgeRequest(group, member, 1)).error_code == Error.INVALID_REQUEST


def test_acknowledgement_needs_a_session(world: World) -> None:
    member = Member(world)
    assert member.acknowledge(epoch=1).error_code == Error.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(epoch=FINAL).error_code == Error.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(epoch=0).error_code == Error.INVALID_SHARE_SESSION_EPOCH
    member.fetch([0], epoch=0)
    assert member.acknowledge(epoch=5).error_code == Error.INVALID_SHARE_SESSION_EPOCH
    assert list(member.acknowledge(epoch=1).responses) == [], "nothing was acknowledged"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ([(5, 4, [ACCEPT])], Error.INVALID_REQUEST),
        ([(0, 4, [])], Error.INVALID_REQUEST),
        ([(0, 4, [ACCEPT, ACCEPT])], Error.INVALID_REQUEST),
        ([(0, 4, [5])], Error.INVALID_REQUEST),
        ([(0, 4, [RENEW])], Error.INVALID_REQUEST),
        ([(5, 9, [ACCEPT]), (0, 4, [ACCEPT])], Error.INVALID_REQUEST),
        ([(0, 4, [ACCEPT]), (4, 5, [ACCEPT])], Error.INVALID_RECORD_STATE),
        ([(0, 15, [ACCEPT])], Error.INVALID_REQUEST),
        ([(0, 1, [ACCEPT, -1])], Error.INVALID_REQUEST),
    ],
)
def test_wrong_acknowledgements_change_nothing(world: World, said: Any, error: Error) -> None:
    member = Member(world)
    member.acquire()
    assert member.settle(*said) == error
    assert member.settle((0, 9, [ACCEPT])) == Error.NONE


def test_older_version_knows_nothing_of_renewing(world: World) -> None:
    member = Member(world, version=1)
    member.acquire()
    assert member.settle((0, 9, [RENEW])) == Error.INVALID_REQUEST
    assert member.settle((0, 9, [ACCEPT])) == Error.NONE


def test_nobody_settles_for_another(world: World) -> None:
    Member(world).acquire()
    other = Member(world, "b")
    other.acquire()
    assert other.settle((0, 9, [ACCEPT])) == Error.INVALID_RECORD_STATE


def test_unknown_topics_and_partitions_are_told(world: World) -> None:
    member = Member(world)
    topic = m.ShareFetchRequest_FetchTopic(b"?" * 16, [m.ShareFetchRequest_FetchPartition(0)])
    assert error_of(member.fetch(topics=[topic])) == Error.UNKNOWN_TOPIC_ID
    assert error_of(Member(world, "b").fetch([7])) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert member.settle((0, 0, [ACCEPT]), part=7) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert member.settle((0, 0, [ACCEPT]), part=1) == Error.UNKNOWN_TOPIC_OR_PARTITION, "never fetched"
    rows = [
        m.ShareAcknowledgeRequest_AcknowledgePartition(0, [m.ShareAcknowledgeRequest_AcknowledgementBatch(0, 0, [1])])
    ]
    nowhere = m.ShareAcknowledgeRequest_AcknowledgeTopic(b"?" * 16, rows)
    answer = member.client.call(m.ShareAcknowledgeRequest("g", "a", member.epoch, topics=[nowhere]))
    assert error_of(answer) == Error.UNKNOWN_TOPIC_ID


def test_group_that_is_not_set_up_is_told_so(world: World) -> None:
    assert error_of(Member(world, group="other").fetch([0])) == Error.UNKNOWN_SERVER_ERROR


def test_deleted_topic_is_unknown(world: World) -> None:
    member = Member(world)
    member.acquire()
    member.send(max_wait_ms=1000)
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")]))
    assert error_of(member.client.take()) == Error.UNKNOWN_TOPIC_ID


def test_sessions_are_bounded(make_world: Callable[..., World]) -> None:
    world = ready(make_world(group_share_max_share_sessions="1"))
    member = Member(world)
    member.acquire()
    assert member.fetch([0], epoch=0).error_code == Error.NONE, "it takes the place of its own"
    other = Member(world, "b")
    other.send([0], max_wait_ms=500)
    assert other.client.take() is None, "it would come again at once"
    world.advance(500)
    assert other.client.take().error_code == Error.SHARE_SESSION_LIMIT_REACHED


def test_acquire_modes(world: World) -> None:
    produce(world, b"a", b"b")
    one, other = Member(world), Member(world, "b")
    assert one.acquire(max_records=3, share_acquire_mode=1) == [(0, 2, 1)]
    assert other.acquire(max_records=3, share_acquire_mode=0) == [(3, 9, 1)]
    assert one.acquire(max_records=0) == []
    assert one.acquire(max_bytes=0) == []


def test_records_are_counted_over_all_partitions(world: World) -> None:
    produce(world, b"a", b"b", partition=1)
    answer = Member(world).fetch([0, 1], max_records=2, share_acquire_mode=1)
    assert len(acquired(answer) + acquired(answer, 1)) == 1


def test_only_batches_with_acquired_records_come(world: World) -> None:
    produce(world, *(b"%d" % place for place in range(10, 20)))
    produce(world, *(b"%d" % place for place in range(20, 30)))
    member = Member(world)
    member.acquire()
    member.settle((0, 11, [ACCEPT]), (12, 13, [RELEASE]))
    answer = member.fetch()
    assert acquired(answer) == [(12, 13, 2)]
    assert sorted(values(answer)) == list(range(10, 20))


def test_records_delivered_too_often_are_given_up(world: World) -> None:
    set_group(world, share_delivery_count_limit="2")
    member = Member(world)
    for _ in range(4):
        member.fetch([0])
        world.advance(LOCK_MS)
    assert member.acquire() == []
    produce(world, b"x")
    assert member.acquire() == [(10, 10, 1)]


def test_group_has_its_own_lock_duration_and_number_of_locks(world: World) -> None:
    set_group(world, share_record_lock_duration_ms="15000", share_partition_max_record_locks="100")
    for _ in range(15):
        produce(world, *[b"x"] * 10)
    member = Member(world)
    answer = member.fetch([0])
    assert answer.acquisition_lock_timeout_ms == 15_000
    assert acquired(answer) == [(0, 99, 1)]
    assert member.acquire() == []
    world.advance(15_000)
    assert member.acquire() == [(0, 99, 2)]


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 20), ("by_duration:PT1H", 10)])
def test_group_begins_where_it_says(world: World, reset: str, expected: int) -> None:
    set_group(world, group="h", share_auto_offset_reset=reset)
    world.advance(7_200_000)
    produce(world, *[b"x"] * 10)
    initialize(world, group="h", start=-1)
    member = Member(world, group="h")
    member.fetch([0], max_records=0)
    member.fetch([0], max_records=1, share_acquire_mode=1)
    world.restart(clean=False)
    produce(world, b"later")
    assert Member(world, group="h").acquire()[0][0] == expected, "a crash does not move the beginning"


@pytest.mark.parametrize("clean", [True, False])
def test_crash_forgets_locks_alone(world: World, clean: bool) -> None:
    member = Member(world)
    member.acquire()
    member.settle((2, 3, [ACCEPT]), (4, 4, [RELEASE]), (8, 8, [REJECT]))
    world.restart(clean)
    assert Member(world).acquire() == [(0, 1, 1), (4, 4, 2), (5, 7, 1), (9, 9, 1)]


def test_log_start_that_moves_takes_records_along(world: World) -> None:
    member = Member(world)
    member.acquire()
    produce(world, b"x", b"y")
    world.node.replicas.by_name["t"][0].log.delete_records(11)
    assert member.acquire() == [(11, 11, 1)]
    assert member.settle((0, 9, [ACCEPT])) == Error.NONE


def test_group_that_is_ahead_of_its_log_waits_for_it(world: World) -> None:
    initialize(world, 0, start=12, epoch=1)
    member = Member(world)
    assert member.acquire() == []
    produce(world, b"a", b"b", b"c")
    assert member.acquire() == [(12, 12, 1)]


def test_state_that_is_set_anew_counts_at_once(world: World) -> None:
    member = Member(world)
    member.acquire()
    initialize(world, 0, start=5, epoch=1)
    assert member.settle((0, 9, [ACCEPT])) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert member.acquire() == [(5, 9, 1)]
    assert member.settle((5, 9, [ACCEPT])) == Error.NONE


def test_leader_that_was_overtaken_lets_go(world: World) -> None:
    member = Member(world)
    member.acquire()
    part = m.ReadShareGroupStateRequest_PartitionData(0, 99)
    topic = m.ReadShareGroupStateRequest_ReadStateData(id_of(world), [part])
    world.call(m.ReadShareGroupStateRequest("g", [topic]))
    assert member.settle((0, 9, [ACCEPT])) == Error.NOT_LEADER_OR_FOLLOWER
    assert error_of(member.fetch()) == Error.NOT_LEADER_OR_FOLLOWER


def append(world: World, batch: bytearray) -> None:
    partition = world.node.replicas.by_name["t"][0]
    partition.append(memoryview(batch), world.clock.wall_ms(), Origin.COORDINATOR)
    world.node.signal(partition)


def transaction(world: World, producer_id: int, *values: bytes, sequence: int = 0) -> None:
    rows = [Record(place, 1, None, value) for place, value in enumerate(values)]
    append(world, build(rows, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True))


def end(world: World, producer_id: int, commit: bool) -> None:
    append(world, end_txn_marker(commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=1))


def test_aborted_records_are_not_delivered_where_only_committed_ones_are_wanted(world: World) -> None:
    set_group(world, share_isolation_level="read_committed")
    transaction(world, 7, b"bad", b"worse")  # 10, 11
    transaction(world, 8, b"good")  # 12
    member = Member(world)
    assert member.acquire() == [(0, 9, 1)], "nothing is decided yet"
    member.send(max_wait_ms=1000)
    end(world, 7, commit=False)  # 13
    end(world, 8, commit=True)  # 14
    transaction(world, 7, b"fine", sequence=2)  # 15
    end(world, 7, commit=True)  # 16
    taken = acquired(member.client.take())
    while more := member.acquire():
        taken += more
    delivered = {offset for first, last, _ in taken for offset in range(first, last + 1)}
    assert delivered >= {12, 15}
    assert not delivered & {10, 11}


def test_fetch_passes_over_what_was_aborted(world: World) -> None:
    set_group(world, share_isolation_level="read_committed")
    member = Member(world)
    member.acquire()
    member.settle((0, 9, [ACCEPT]))
    transaction(world, 7, b"bad")
    end(world, 7, commit=False)
    assert member.acquire() == [(11, 11, 1)], "the marker, which is a gap to the consumer"


def test_uncommitted_records_are_delivered_otherwise(world: World) -> None:
    transaction(world, 7, b"open")
    assert Member(world).acquire() == [(0, 10, 1)]


def test_two_groups_do_not_mind_each_other(world: World) -> None:
    initialize(world, group="h")
    assert Member(world).acquire() == [(0, 9, 1)]
    assert Member(world, group="h").acquire() == [(0, 9, 1)]


def test_share_groups_may_be_switched_off(world: World) -> None:
    world.node.cluster.features["share.version"] = 0
    assert Member(world).fetch([0]).error_code == Error.UNSUPPORTED_VERSION
    assert Member(world).acknowledge().error_code == Error.UNSUPPORTED_VERSION

"""Consumer groups step by step: epochs, assignments, static members, patterns, time-outs, and who may commit what."""

from __future__ import annotations

import pytest

from moldau.machines import offsets
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.members import Member
from moldau.machines.offsets import Row
from moldau.machines.reconciling import State
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.consumers import REBALANCE_MS, SESSION_MS, Consumer, Coordinator, converge


@pytest.fixture
def coordinator() -> Coordinator:
    made = Coordinator()
    made.topic = made.create("t", 4)
    return made


def consumer(coordinator: Coordinator, name: str, **fields) -> Consumer:
    return Consumer(coordinator, name, **({"topics": ["t"]} | fields))


def partitions(who: Consumer) -> list[int]:
    return sorted(index for _, index in who.owned)


def pair(coordinator: Coordinator) -> tuple[Consumer, Consumer]:
    """Two members that share the topic."""
    one, two = consumer(coordinator, "m1").join(), consumer(coordinator, "m2").join()
    converge(coordinator, [one, two])
    return one, two


# Joining and reconciling.


def test_the_first_member_gets_everything_at_once(coordinator):
    one = consumer(coordinator, "m1").join()
    assert (one.epoch, partitions(one)) == (2, [0, 1, 2, 3])
    assert coordinator.group().state_name() == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up_its_share(coordinator):
    one = consumer(coordinator, "m1").join()
    coordinator.advance(1000)
    two = consumer(coordinator, "m2").join()
    assert (two.epoch, partitions(two)) == (3, [])
    one.beat()
    assert (one.epoch, len(one.target)) == (2, 2), "it is asked to give up, in its old epoch"
    assert partitions(two.beat()) == []
    assert coordinator.group().state_name() == "Reconciling"
    one.settle()
    assert one.beat().epoch == 3
    assert partitions(two.beat()) == [2, 3]
    assert coordinator.group().state_name() == "Stable"


def test_assignments_keep_their_distance(coordinator):
    consumer(coordinator, "m1").join()
    two = consumer(coordinator, "m2").join()
    assert two.epoch == 2 and coordinator.group().state_name() == "Assigning"
    coordinator.advance(999)
    assert two.beat().epoch == 2
    coordinator.advance(1)
    assert two.beat().epoch == 3


def test_a_clock_that_was_set_back_holds_up_no_assignment(coordinator):
    consumer(coordinator, "m1").join()
    coordinator.now_ms -= 60_000
    assert consumer(coordinator, "m2").join().epoch == 3


def test_without_an_interval_every_join_is_assigned_at_once(coordinator):
    coordinator.configure("g", "consumer.assignment.interval.ms", "0")
    consumer(coordinator, "m1").join()
    assert consumer(coordinator, "m2").join().epoch == 3


def test_the_assignment_is_sent_when_it_changed_or_when_the_client_says_everything(coordinator):
    one = consumer(coordinator, "m1").join()
    assert coordinator.beat(one.request()).assignment is None
    assert len(coordinator.beat(one.full(one.epoch)).assignment.topic_partitions) == 1


def test_a_group_has_its_own_timeouts(coordinator):
    coordinator.configure("g", "consumer.heartbeat.interval.ms", "7000")
    coordinator.configure("g", "consumer.session.timeout.ms", "50000")
    one = consumer(coordinator, "m1").join()
    assert coordinator.beat(one.request()).heartbeat_interval_ms == 7000
    coordinator.advance(SESSION_MS)
    assert not one.beat().error
    coordinator.advance(50_000)
    assert one.beat().error == Error.UNKNOWN_MEMBER_ID


def test_the_assignor_is_chosen_by_the_majority(coordinator):
    members = [
        consumer(coordinator, f"m{n}", assignor=name).join() for n, name in enumerate(["uniform", "range", "range"])
    ]
    converge(coordinator, members)
    assert [partitions(who) for who in members] == [[0, 1], [2], [3]]
    assert coordinator.group().preferred_assignor("uniform") == "range"


# Epochs.


def test_epochs_that_cannot_be_are_fenced(coordinator):
    one = consumer(coordinator, "m1").join()
    for epoch in (1, 3):
        assert coordinator.beat(one.request(member_epoch=epoch)).error_code == Error.FENCED_MEMBER_EPOCH
    assert coordinator.beat(one.request(member_id="other")).error_code == Error.UNKNOWN_MEMBER_ID
    assert coordinator.beat(one.request(group_id="other")).error_code == Error.GROUP_ID_NOT_FOUND


def test_an_answer_that_was_lost_can_be_asked_for_again(coordinator):
    one = consumer(coordinator, "m1").join()
    coordinator.advance(1000)
    one.topics = ["t", "u"]
    coordinator.create("u", 1)
    one.send(one.full(2), lost=True)
    assert one.send(one.full(2)).epoch == 3 and len(one.owned) == 5
    assert coordinator.beat(one.request(member_epoch=2)).error_code == Error.FENCED_MEMBER_EPOCH, "it must say its own"


def test_the_epoch_before_is_not_good_for_partitions_that_are_not_the_members_own(coordinator):
    one, two = pair(coordinator)
    stolen = [m.ConsumerGroupHeartbeatRequest_TopicPartitions(coordinator.topic, partitions(two))]
    previous = coordinator.group().members["m1"].previous_epoch
    answer = coordinator.beat(one.request(member_epoch=previous, topic_partitions=stolen))
    assert answer.error_code == Error.FENCED_MEMBER_EPOCH


def test_a_member_may_join_again_at_any_time(coordinator):
    one = consumer(coordinator, "m1").join()
    assert (one.join().epoch, partitions(one)) == (2, [0, 1, 2, 3])


# Leaving.


def test_who_leaves_makes_room(coordinator):
    one, two = pair(coordinator)
    one.leave()
    assert list(coordinator.group().members) == ["m2"]
    coordinator.advance(1000)
    assert partitions(two.beat()) == [0, 1, 2, 3]


def test_who_is_silent_for_a_session_is_taken_out(coordinator):
    one, two = pair(coordinator)
    coordinator.advance(SESSION_MS - 1)
    two.beat()
    coordinator.advance(1)
    assert list(coordinator.group().members) == ["m2"]
    assert one.beat().error == Error.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_partitions_in_time_is_taken_out(coordinator):
    one = consumer(coordinator, "m1").join()
    coordinator.advance(1000)
    two = consumer(coordinator, "m2").join()
    one.beat()
    assert coordinator.group().members["m1"].state == State.UNREVOKED
    coordinator.advance(REBALANCE_MS - 1)
    one.beat()
    coordinator.advance(1)
    assert list(coordinator.group().members) == ["m2"]
    assert partitions(two.beat()) == [0, 1, 2, 3]


def test_after_a_crash_members_have_a_session_to_come_back(coordinator):
    one, _ = pair(coordinator)
    coordinator.crash()
    coordinator.advance(SESSION_MS - 1)
    assert not one.beat().error
    coordinator.advance(1)
    assert list(coordinator.group().members) == ["m1"]


def test_the_last_to_leave_leaves_an_empty_group_that_can_be_deleted(coordinator):
    one = consumer(coordinator, "m1").join()
    with pytest.raises(Refused, match="NON_EMPTY_GROUP"):
        coordinator.machine.delete("g")
    one.leave()
    assert coordinator.group().state_name() == "Empty"
    for change in coordinator.machine.delete("g"):
        coordinator.machine.replay(change.key, change.value, -1)
    assert not coordinator.machine.groups


# Static members.


def test_a_static_member_comes_back_to_what_it_had(coordinator):
    one = consumer(coordinator, "m1", instance_id="i1").join()
    two = consumer(coordinator, "m2").join()
    converge(coordinator, [one, two])
    had, epoch = one.owned, coordinator.group().epoch
    one.leave(-2)
    again = consumer(coordinator, "m3", instance_id="i1").join()
    assert (again.owned, again.epoch, coordinator.group().epoch) == (had, epoch, epoch)
    assert coordinator.beat(one.request(member_epoch=epoch)).error_code == Error.FENCED_INSTANCE_ID


def test_an_instance_id_in_use_is_not_given_away(coordinator):
    consumer(coordinator, "m1", instance_id="i1").join()
    assert consumer(coordinator, "m2", instance_id="i1").join().error == Error.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_taken_out(coordinator):
    one = consumer(coordinator, "m1", instance_id="i1").join()
    one.leave(-2)
    assert list(coordinator.group().members) == ["m1"]
    coordinator.advance(SESSION_MS)
    assert not coordinator.group().members


def test_an_instance_id_is_free_when_its_member_has_come_back_with_another():
    group = ConsumerGroup("g")
    group.put(Member("m1", "i1"))
    group.put(Member("m1", "i2"))
    assert group.static_member("i1") is None and group.static_member("i2").id == "m1"
    group.remove("m1")
    assert group.static_member("i2") is None


def test_an_unknown_instance_cannot_go_on_or_leave(coordinator):
    one = consumer(coordinator, "m1").join()
    for epoch in (2, -1, -2):
        answer = coordinator.beat(one.request(member_epoch=epoch, instance_id="i9"))
        assert answer.error_code == Error.UNKNOWN_MEMBER_ID


# Topics that change.


def test_new_partitions_are_shared_out(coordinator):
    one, two = pair(coordinator)
    coordinator.extend("t", 6)
    converge(coordinator, [one, two])
    assert sorted(partitions(one) + partitions(two)) == [0, 1, 2, 3, 4, 5]


def test_a_topic_that_is_deleted_and_created_again_is_another(coordinator):
    one = consumer(coordinator, "m1").join()
    coordinator.delete("t")
    converge(coordinator, [one])
    assert not one.owned and one.epoch == 3
    topic_id = coordinator.create("t", 1)
    converge(coordinator, [one])
    assert one.owned == {(topic_id, 0)}


def test_a_topic_can_be_subscribed_to_before_it_exists(coordinator):
    one = consumer(coordinator, "m1", topics=["later"]).join()
    assert not one.owned
    coordinator.create("later", 2)
    coordinator.advance(1000)
    assert partitions(one.beat()) == [0, 1]


def test_a_pattern_finds_topics_now_and_those_that_come(coordinator):
    coordinator.create("other", 1)
    one = consumer(coordinator, "m1", topics=[], regex="t.*").join()
    assert partitions(one) == [0, 1, 2, 3]
    coordinator.create("t2", 1)
    coordinator.advance(1000)
    assert len(one.beat().owned) == 4, "topics are matched again after a while"
    coordinator.advance(10_000)
    assert len(one.beat().owned) == 5


def test_a_pattern_must_match_the_whole_name(coordinator):
    assert not consumer(coordinator, "m1", topics=[], regex="x|").join().owned
    coordinator.create("ttt", 1)
    assert len(consumer(coordinator, "m2", topics=[], regex="tt+", group_id="h").join().owned) == 1


def test_a_pattern_that_nobody_uses_any_longer_is_forgotten(coordinator):
    one = consumer(coordinator, "m1", topics=[], regex="t.*").join()
    two = consumer(coordinator, "m2", topics=[], regex="t.*").join()
    one.leave()
    assert list(coordinator.group().regexes) == ["t.*"]
    two.regex = "o.*"
    two.send(two.full(two.epoch))
    assert list(coordinator.group().regexes) == ["o.*"]
    two.leave()
    assert not coordinator.group().regexes


def test_who_drops_a_topic_is_asked_to_give_it_up_at_once(coordinator):
    coordinator.create("u", 2)
    one = consumer(coordinator, "m1", topics=["t", "u"]).join()
    one.topics = ["u"]
    one.send(one.full(one.epoch))
    assert {topic for topic, _ in one.target} == {coordinator.cluster.topics["u"].id}
    assert coordinator.group().members["m1"].state == State.UNREVOKED


# What is refused.


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": ""}, Error.INVALID_REQUEST),
        ({"group_id": ""}, Error.INVALID_REQUEST),
        ({"instance_id": ""}, Error.INVALID_REQUEST),
        ({"rack_id": ""}, Error.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, Error.INVALID_REQUEST),
        ({"topic_partitions": None}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, Error.INVALID_REQUEST),
        ({"member_epoch": -2}, Error.INVALID_REQUEST),
        ({"member_epoch": -3}, Error.INVALID_REQUEST),
        ({"server_assignor": "mine"}, Error.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, Error.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": "(?=x)"}, Error.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 3}, Error.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, Error.GROUP_ID_NOT_FOUND),
    ],
)
def test_requests_that_make_no_sense_are_refused(coordinator, fields, error):
    request = consumer(coordinator, "m1").full(0)
    for name, value in fields.items():
        setattr(request, name, value)
    assert coordinator.beat(request).error_code == error
    assert not coordinator.machine.groups and not coordinator.log


def test_a_full_group_takes_nobody_else():
    coordinator = Coordinator(group_consumer_max_size=1)
    coordinator.create("t", 4)
    one = consumer(coordinator, "m1").join()
    assert consumer(coordinator, "m2").join().error == Error.GROUP_MAX_SIZE_REACHED
    assert not one.join().error


def test_version_0_lets_the_coordinator_choose_the_id(coordinator):
    answer = coordinator.beat(consumer(coordinator, "").full(0), version=0)
    assert answer.error_code == 0 and len(answer.member_id) == 36


# Offsets.


def commit(coordinator: Coordinator, member_id: str, epoch: int, version: int = 9) -> object:
    return coordinator.group().check_commit(member_id, None, epoch, transactional=False, version=version)


def refusal(call, *args, **named) -> Error:
    with pytest.raises(Refused) as caught:
        call(*args, **named)
    return caught.value.error


def test_members_commit_in_their_epoch(coordinator):
    pair(coordinator)
    epoch = coordinator.group().members["m1"].epoch
    assert commit(coordinator, "m1", epoch) is None
    assert refusal(commit, coordinator, "m1", epoch + 1) == Error.STALE_MEMBER_EPOCH
    assert refusal(commit, coordinator, "m9", epoch) == Error.UNKNOWN_MEMBER_ID
    assert refusal(commit, coordinator, "", -1) == Error.UNKNOWN_MEMBER_ID
    assert refusal(commit, coordinator, "m1", epoch, 8) == Error.UNSUPPORTED_VERSION


def test_a_commit_of_an_older_epoch_is_good_for_what_was_owned_in_it(coordinator):
    one, _ = pair(coordinator)
    check = commit(coordinator, "m1", 2)
    assert check is not None
    for index in range(4):
        if index in partitions(one):
            check("t", coordinator.topic, index)
        else:
            assert refusal(check, "t", coordinator.topic, index) == Error.STALE_MEMBER_EPOCH
    assert refusal(commit(coordinator, "m1", 1), "t", coordinator.topic, 0) == Error.STALE_MEMBER_EPOCH


def test_a_transaction_may_commit_what_was_owned_in_an_older_epoch(coordinator):
    """TxnOffsetCommit knows topics by name, and has no code for a stale epoch."""
    one, two = pair(coordinator)
    where = coordinator.machine, "g", ("m1", None, 2)
    mine = [Row("t", bytes(16), index, 5, -1, "") for index in partitions(one)]
    result = offsets.commit_transactional(*where, mine, coordinator.now_ms, version=5)
    assert set(result.errors) == {Error.NONE} and len(result.changes) == len(mine)
    rows = [*mine, Row("t", bytes(16), partitions(two)[0], 5, -1, "")]
    late = refusal(offsets.commit_transactional, *where, rows, coordinator.now_ms, version=5)
    assert late == Error.ILLEGAL_GENERATION


def test_one_partition_that_is_not_the_members_refuses_the_whole_commit(coordinator):
    pair(coordinator)
    rows = [Row("t", coordinator.topic, index, 5, -1, "") for index in range(4)]
    asked = coordinator.machine, "g", ("m1", None, 2), rows, coordinator.now_ms
    assert refusal(offsets.commit, *asked, version=9) == Error.STALE_MEMBER_EPOCH


def test_an_empty_group_takes_offsets_from_anybody(coordinator):
    consumer(coordinator, "m1").join().leave()
    assert commit(coordinator, "", -1) is None


def test_offsets_are_fetched_in_the_epoch_of_the_member_or_by_nobody_in_particular(coordinator):
    consumer(coordinator, "m1").join()
    group = coordinator.group()
    group.check_fetch(None, -1)
    group.check_fetch("m1", 2)
    assert refusal(group.check_fetch, "m1", 1) == Error.STALE_MEMBER_EPOCH
    assert refusal(group.check_fetch, "m2", 2) == Error.UNKNOWN_MEMBER_ID


def test_topics_by_name_and_by_pattern_are_subscribed_to(coordinator):
    consumer(coordinator, "m1", topics=["named"]).join()
    consumer(coordinator, "m2", topics=[], regex="t.*").join()
    assert [coordinator.group().subscribes(name) for name in ("named", "t", "other")] == [True, True, False]


def test_a_group_written_by_an_older_kafka_gets_the_hash_in_place_of_its_topics(coordinator):
    one = consumer(coordinator, "m1").join()
    coordinator.machine.replay(m.ConsumerGroupPartitionMetadataKey("g"), m.ConsumerGroupPartitionMetadataValue(), -1)
    coordinator.extend("t", 5)
    one.beat()
    assert not coordinator.group().has_old_metadata
    assert (m.ConsumerGroupPartitionMetadataKey("g"), None) in coordinator.log

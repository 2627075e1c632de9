"""Share groups: how members join, what they are given, when they are fenced, and what of it is written."""

from __future__ import annotations

import pytest

from moldau.machines import offsets
from moldau.machines.effects import Effects
from moldau.machines.share import offsets as share_offsets
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.topics import Known
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.consumers import Consumer
from tests.machines.shares import Sharer, Shares, settle


@pytest.fixture
def home() -> Shares:
    home = Shares()
    home.create("t", 3)
    return home


def test_a_partition_is_assigned_once_it_has_a_state(home):
    one = Sharer(home, "m1", ["t"]).join()
    assert (one.error, one.epoch, one.has, one.answer.heartbeat_interval_ms) == (0, 2, frozenset(), 5000)
    assert {key[2]: offset for key, offset in home.offsets.items()} == {0: -1, 1: -1, 2: -1}
    home.advance(999)
    assert one.beat().answer.assignment is None
    home.advance(1)
    assert one.beat().epoch == 3 and len(one.has) == 3
    assert one.beat().answer.assignment is None


def test_members_share_and_nobody_waits(home):
    one, two = Sharer(home, "m1", ["t"]).join(), Sharer(home, "m2", ["t"]).join()
    settle(home, [one, two])
    assert len(one.has | two.has) == 3 and not one.has & two.has
    group = home.share_group()
    assert (group.state_name(), one.epoch, two.epoch) == ("Stable", group.epoch, group.epoch)
    three, four = Sharer(home, "m3", ["t"]).join(), Sharer(home, "m4", ["t"]).join()
    settle(home, [one, two, three, four])
    assert all(1 <= len(who.has) <= 2 for who in (one, two, three, four))


def test_new_partitions_and_new_topics_are_set_up_and_assigned(home):
    one = Sharer(home, "m1", ["t", "later"]).join()
    settle(home, [one])
    home.extend("t", 5)
    later = home.create("later", 1)
    settle(home, [one])
    assert len(one.has) == 6 and (later, 0) in one.has


def test_a_topic_that_is_not_asked_for_any_longer_goes_at_once(home):
    home.create("u", 1)
    one = Sharer(home, "m1", ["t", "u"]).join()
    settle(home, [one])
    one.send(one.epoch, subscribed_topic_names=["u"])
    assert len(one.has) == 1


def test_the_state_of_a_topic_outlives_its_subscribers(home):
    home.create("u", 1)
    one = Sharer(home, "m1", ["t", "u"]).join()
    settle(home, [one])
    one.send(one.epoch, subscribed_topic_names=["u"])
    settle(home, [one])
    assert len(home.offsets) == 4 and len(home.share_group().known_states().initialized) == 2


def test_a_deleted_topic_takes_its_state_along(home):
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    home.drop_topic("t")
    settle(home, [one])
    assert not one.has and not home.share_group().known_states().initialized
    home.create("t", 1)
    settle(home, [one])
    assert len(one.has) == 1


def test_states_that_cannot_be_had_are_asked_for_again(home):
    home.down = True
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    assert not one.has and not home.share_group().known_states().initializing
    home.down = False
    settle(home, [one])
    assert len(one.has) == 3


def test_a_partition_is_set_up_once_however_many_heartbeats_ask_for_it(home):
    Sharer(home, "m1", ["t"]).join(crash=True)
    group, topic = home.share_group(), home.cluster.topics["t"]
    wanted = {topic.id: Known("t", frozenset(topic.partitions))}
    request = share_offsets.begin_set_up(home.machine, "g", wanted)
    assert [part.partition for row in request.topics for part in row.partitions] == [0, 1, 2]
    assert share_offsets.begin_set_up(home.machine, "g", wanted) is None, "it is under way"
    assert Sharer(home, "m2", ["t"]).join().error == 0 and not home.offsets
    home.initialize(request)
    assert len(home.offsets) == 3 and group.setting_up == {}
    assert share_offsets.begin_set_up(home.machine, "g", wanted) is None, "it has been done"


def test_a_crash_before_the_states_are_there_is_made_good(home):
    one = Sharer(home, "m1", ["t"]).join(crash=True)
    assert home.share_group().known_states().initializing and not home.offsets
    settle(home, [one])
    assert len(one.has) == len(home.offsets) == 3


def test_epochs_fence(home):
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    assert one.epoch == 3
    assert one.send(2).error == 0 and one.epoch == 3, "an answer may have been lost"
    assert Sharer(home, "m1", []).send(1).error == Error.FENCED_MEMBER_EPOCH
    assert Sharer(home, "m1", []).send(4).error == Error.FENCED_MEMBER_EPOCH
    assert Sharer(home, "m2", []).send(3).error == Error.UNKNOWN_MEMBER_ID
    assert Sharer(home, "m1", [], "none").send(3).error == Error.GROUP_ID_NOT_FOUND
    assert Sharer(home, "m2", []).send(-1).error == Error.UNKNOWN_MEMBER_ID
    assert Sharer(home, "m1", [], "none").send(-1).error == Error.GROUP_ID_NOT_FOUND


def test_a_member_that_joins_again_is_where_it_was(home):
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    again = Sharer(home, "m1", ["t"]).join()
    assert (again.epoch, again.has) == (one.epoch, one.has)


@pytest.mark.parametrize(
    ("group", "member", "epoch", "fields"),
    [
        ("g", "", 0, {"subscribed_topic_names": ["t"]}),
        ("", "m", 0, {"subscribed_topic_names": ["t"]}),
        ("g", "m", 0, {"subscribed_topic_names": ["t"], "rack_id": ""}),
        ("g", "m", 0, {}),
        ("g", "m", 0, {"subscribed_topic_names": []}),
        ("g", "m", -2, {}),
    ],
)
def test_requests_that_make_no_sense(home, group, member, epoch, fields):
    assert Sharer(home, member, [], group).send(epoch, **fields).error == Error.INVALID_REQUEST
    assert not home.machine.groups


def test_a_group_has_room_for_so_many(home):
    home.settings["group.share.max.size"] = 1
    home.crash()
    one = Sharer(home, "m1", ["t"]).join()
    assert Sharer(home, "m2", ["t"]).join().error == Error.GROUP_MAX_SIZE_REACHED
    assert one.beat().error == 0


def test_silence_and_leaving_empty_a_group(home):
    one, two = Sharer(home, "m1", ["t"]).join(), Sharer(home, "m2", ["t"]).join()
    settle(home, [one, two])
    home.configure("g", "share.session.timeout.ms", "60000")
    two.beat()
    home.advance(45_000)
    assert list(home.share_group().members) == ["m2"]
    assert two.leave().answer.member_epoch == -1
    assert home.share_group().state_name() == "Empty" and not home.share_group().target
    assert home.machine.next_deadline_ms() > home.now_ms + 100_000, "no session is left"


def test_a_restart_gives_everybody_a_sessions_time(home):
    Sharer(home, "m1", ["t"]).join()
    home.advance(40_000)
    home.crash()
    home.advance(44_999)
    assert home.share_group().members
    home.advance(1)
    assert not home.share_group().members


def test_settings_of_the_group_win(home):
    home.configure("g", "share.heartbeat.interval.ms", "7000")
    home.configure("g", "share.assignment.interval.ms", "0")
    one = Sharer(home, "m1", ["t"]).join()
    assert one.answer.heartbeat_interval_ms == 7000
    assert len(one.beat().has) == 3


# Ids belong to one kind.


def test_an_id_of_another_kind_is_not_taken_over(home):
    Consumer(home, "c1", ["t"]).join()
    assert Sharer(home, "m1", ["t"]).join().error == Error.GROUP_ID_NOT_FOUND
    Sharer(home, "m1", ["t"], "s").join()
    assert Consumer(home, "c1", ["t"], group_id="s").join().error == Error.GROUP_ID_NOT_FOUND


def test_a_group_that_only_stores_offsets_is_no_share_group(home):
    commit = offsets.commit(home.machine, "g", ("", None, -1), [("t", bytes(16), 0, 1, -1, "")], 0, version=9)
    for change in commit.changes:
        home.machine.replay(change.key, change.value, -1)
    assert Sharer(home, "m1", ["t"]).join().error == Error.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("empty", [False, True])
def test_the_classic_protocol_is_refused_by_an_empty_group_too(home, empty):
    one = Sharer(home, "m1", ["t"]).join()
    if empty:
        one.leave()
    protocol = m.JoinGroupRequest_JoinGroupRequestProtocol("range", b"")
    leaver = m.LeaveGroupRequest_MemberIdentity("x")
    asked = {
        "join": m.JoinGroupRequest("g", protocol_type="consumer", protocols=[protocol]),
        "sync": m.SyncGroupRequest("g", 1, "x"),
        "heartbeat": m.HeartbeatRequest("g", 1, "x"),
        "leave": m.LeaveGroupRequest("g", members=[leaver]),
    }
    answers = {command: home.classic(command, request, 5) for command, request in asked.items()}
    assert answers["join"].error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    assert answers["sync"].error_code == answers["heartbeat"].error_code == Error.UNKNOWN_MEMBER_ID
    assert [row.error_code for row in answers["leave"].members] == [Error.UNKNOWN_MEMBER_ID]
    assert isinstance(home.machine.groups["g"], ShareGroup)


def test_share_groups_have_no_offsets(home):
    Sharer(home, "m1", ["t"]).join().leave()
    row = ("t", bytes(16), 0, 1, -1, "")
    with pytest.raises(Refused) as refused:
        offsets.commit(home.machine, "g", ("", None, -1), [row], 0, version=9)
    assert refused.value.error == Error.GROUP_ID_NOT_FOUND
    with pytest.raises(Refused) as refused:
        offsets.delete(home.machine, "g", [("t", 0)])
    assert refused.value.error == Error.GROUP_ID_NOT_FOUND
    home.share_group().check_fetch(None, -1)
    home.advance(100 * 24 * 3_600_000)
    assert "g" in home.machine.groups, "it does not expire"


# What the group has at the share coordinator.


def emptied(home: Shares) -> bytes:
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    one.leave()
    return home.cluster.topics["t"].id


def test_offsets_are_altered_where_nobody_reads(home):
    topic = home.cluster.topics["t"].id
    one = Sharer(home, "m1", ["t"]).join()
    with pytest.raises(Refused) as refused:
        share_offsets.alter(home.machine, "g", {topic: {0: 7}})
    assert refused.value.error == Error.NON_EMPTY_GROUP
    one.leave()
    step = share_offsets.alter(home.machine, "g", {topic: {0: 7}})
    home.run(Effects(step.changes))
    home.initialize(step.request)
    assert home.offsets["g", topic, 0] == 7
    (row,) = step.request.topics
    assert row.partitions[0].state_epoch == home.share_group().epoch


def test_altering_brings_a_group_into_being(home):
    topic = home.cluster.topics["t"].id
    assert share_offsets.alter(home.machine, "new", {topic: {}}) == ([], None)
    step = share_offsets.alter(home.machine, "new", {topic: {1: 5}})
    home.run(Effects(step.changes))
    home.initialize(step.request)
    assert home.share_group("new").state_name() == "Empty"
    one = Sharer(home, "m1", ["t"], "new").join()
    assert one.epoch == 2 and len(home.offsets) == 3 and home.offsets["new", topic, 1] == 5


def test_offsets_are_deleted_by_topic(home):
    home.create("u", 1)
    topic = emptied(home)
    step, nothing = share_offsets.delete_offsets(home.machine, "g", ["t", "u", "none"])
    assert list(nothing) == ["u", "none"]
    home.run(Effects(step.changes))
    states = home.share_group().known_states()
    assert (states.initialized, list(states.deleting)) == ({}, [topic])
    again, _ = share_offsets.delete_offsets(home.machine, "g", ["t"])
    assert again.request == step.request, "what was not finished can be tried again"
    home.delete_states(step.request)
    home.run(Effects(share_offsets.offsets_deleted(home.machine, "g", [topic])))
    assert not home.offsets and not home.share_group().known_states().deleting
    one = Sharer(home, "m1", ["t"]).join()
    settle(home, [one])
    assert len(one.has) == 3


def test_of_a_group_that_never_had_anything_nothing_is_said(home):
    Sharer(home, "m1", ["none"]).join().leave()
    step, nothing = share_offsets.delete_offsets(home.machine, "g", ["t"])
    assert (step.changes, step.request, nothing) == ([], None, {})
    assert share_offsets.delete_group(home.machine, "g") == ([], None)
    assert share_offsets.delete_group(home.machine, "none") == ([], None)


def test_a_group_is_deleted_with_all_that_it_wrote(home):
    emptied(home)
    step = share_offsets.delete_group(home.machine, "g")
    home.run(Effects(step.changes))
    home.crash()
    again = share_offsets.delete_group(home.machine, "g")
    assert again.request == step.request
    home.run(Effects(home.machine.delete("g")))
    assert not home.machine.groups
    live = {}
    for key, value in home.log:
        live[key.SCHEMA.name, str(key)] = value
    assert not [name for name, value in live.items() if value is not None]


def test_what_comes_late_for_a_deleted_group_is_dropped(home):
    topic = home.cluster.topics["t"].id
    for outcome in (share_offsets.initialized, share_offsets.uninitialized):
        assert outcome(home.machine, "g", {topic: frozenset({0})}) == []
    assert share_offsets.offsets_deleted(home.machine, "g", [topic]) == []


def test_tombstones_of_a_group_that_is_gone_do_nothing(home):
    emptied(home)
    tombstones = home.share_group().tombstones()
    home.run(Effects(tombstones))
    home.run(Effects(tombstones))
    assert not home.machine.groups

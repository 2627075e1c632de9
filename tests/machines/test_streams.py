"""Streams groups step by step: topology, tasks, epochs, statuses, endpoints, time-outs, and who may commit what."""

from __future__ import annotations

import pytest

from moldau.machines.effects import Change, Effects
from moldau.machines.reconciling import State
from moldau.machines.streams.configuring import Status
from moldau.machines.streams.tasks import Role
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.consumers import ASSIGNMENT_MS, REBALANCE_MS, SESSION_MS
from tests.machines.streamers import Streamer, StreamsCoordinator, converge, part, topology

ALL = ["0_0", "0_1", "1_0", "1_1"]


@pytest.fixture
def coordinator() -> StreamsCoordinator:
    made = StreamsCoordinator()
    made.create("lines", 2)
    return made


def member(coordinator: StreamsCoordinator, name: str = "m1", **fields) -> Streamer:
    return Streamer(coordinator, name, **fields)


def running(coordinator: StreamsCoordinator, *names: str, **fields) -> list[Streamer]:
    """Members that share all tasks."""
    members = [member(coordinator, name, **fields).join() for name in names]
    converge(coordinator, members)
    return members


def sent(coordinator: StreamsCoordinator, **fields) -> tuple[int, str]:
    answer = member(coordinator).send(member(coordinator).full(0, **fields)).answer
    return answer.error_code, answer.error_message


# Joining, and internal topics.


def test_the_first_join_names_the_topics_that_are_missing_and_the_next_heartbeat_brings_tasks(coordinator):
    one = member(coordinator).join()
    assert (one.error, one.epoch, one.tasks()) == (0, 2, [])
    assert one.status == {Status.MISSING_INTERNAL_TOPICS: "Internal topics are missing: counts, words"}
    assert coordinator.streams().state_name() == "NotReady"
    assert [(topic.name, topic.partitions) for topic in coordinator.missing] == [("counts", 2), ("words", 2)]
    coordinator.advance(ASSIGNMENT_MS)
    assert one.beat().tasks() == ALL and one.status == {}
    assert coordinator.streams().state_name() == "Stable"


def test_source_topics_that_are_missing_are_waited_for(coordinator):
    coordinator.delete("lines")
    one = member(coordinator).join()
    assert one.status == {Status.MISSING_SOURCE_TOPICS: "Source topics lines are missing."}
    coordinator.create("lines", 1)
    converge(coordinator, [one])
    assert one.tasks() == ["0_0", "1_0"]


def test_a_topic_that_grows_takes_all_tasks_away_because_the_changelog_does_not_fit(coordinator):
    (one,) = running(coordinator, "m1")
    coordinator.extend("lines", 3)
    converge(coordinator, [one])
    assert one.tasks() == [] and Status.INCORRECTLY_PARTITIONED_TOPICS in one.status
    assert coordinator.streams().state_name() == "NotReady"


def test_an_empty_group_waits_for_more_members(coordinator):
    coordinator.configure("g", "streams.initial.rebalance.delay.ms", "3000")
    one = member(coordinator).join()
    delayed = "Assignment delayed due to the configured initial rebalance delay."
    assert one.epoch == 1 and one.status[Status.ASSIGNMENT_DELAYED] == delayed
    coordinator.advance(1000)
    two = member(coordinator, "m2").join()
    assert one.beat().tasks() == [] and Status.ASSIGNMENT_DELAYED in one.status
    coordinator.advance(2000)
    assert coordinator.streams().target_epoch == coordinator.streams().epoch, "the timer has assigned"
    assert one.beat().tasks() == ["0_0", "1_0"] and two.beat().tasks() == ["0_1", "1_1"]


def test_assignments_keep_their_distance(coordinator):
    one = member(coordinator).join()
    assert one.beat().tasks() == []
    assert one.status == {Status.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured assignment interval."}


def test_a_second_member_gets_a_task_when_the_first_has_given_it_up(coordinator):
    (one,) = running(coordinator, "m1")
    two = member(coordinator, "m2").join()
    assert two.tasks() == [] and coordinator.streams().members["m2"].state == State.UNRELEASED
    one.beat()
    assert coordinator.streams().members["m1"].state == State.UNREVOKED and len(one.target) == 2
    assert two.beat().tasks() == [] and coordinator.streams().state_name() == "Reconciling"
    one.settle()
    assert one.beat().epoch == two.epoch
    assert sorted(two.beat().tasks() + one.tasks()) == ALL
    assert coordinator.streams().state_name() == "Stable"


def test_a_standby_must_be_given_up_before_its_process_runs_the_task(coordinator):
    coordinator.configure("g", "streams.num.standby.replicas", "1")
    one, two = running(coordinator, "m1", "m2")
    assert one.tasks(Role.STANDBY) == [task for task in two.tasks() if task[0] == "1"]
    two.leave()
    coordinator.advance(ASSIGNMENT_MS)
    assert one.beat().tasks() != ALL and one.owned != one.target, "it is asked to give its copies up"
    one.settle()
    one.beat()
    assert one.beat().tasks() == ALL and one.tasks(Role.STANDBY) == []


def test_a_change_of_standbys_begins_a_new_epoch(coordinator):
    one, two = running(coordinator, "m1", "m2")
    epoch = coordinator.streams().epoch
    coordinator.configure("g", "streams.num.standby.replicas", "1")
    converge(coordinator, [one, two])
    assert coordinator.streams().epoch == epoch + 1
    assert sorted(one.tasks(Role.STANDBY) + two.tasks(Role.STANDBY)) == ["1_0", "1_1"]


def test_a_member_that_says_everything_is_told_its_tasks(coordinator):
    (one,) = running(coordinator, "m1")
    assert coordinator.beat(one.request()).active_tasks is None
    assert one.send(one.full(one.epoch)).tasks() == ALL and one.answer.active_tasks is not None


# Topologies.


def test_a_member_with_another_topology_is_refused_and_one_with_an_older_is_told(coordinator):
    running(coordinator, "m1")
    other = topology(part("0", "lines"))
    assert member(coordinator, "m2", topology=other).join().answer.error_message == (
        "Topology updates are not supported yet."
    )
    newer = StreamsCoordinator()
    newer.create("lines", 2)
    application = topology(part("0", "lines"), epoch=3)
    running(newer, "m1", topology=application)
    old = member(newer, "m2", topology=topology(part("0", "lines"), epoch=2)).join()
    stale = "The member's topology epoch 2 is behind the group's topology epoch 3."
    assert old.error == 0 and old.status[Status.STALE_TOPOLOGY] == stale


def test_a_topology_that_cannot_run_is_refused(coordinator):
    loop = topology(part("0", reads=["x"], sinks=["x"]))
    assert member(coordinator, topology=loop).join().error == Error.STREAMS_INVALID_TOPOLOGY
    assert coordinator.machine.groups == {}


# What is refused.


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"task_offsets": []}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"member_id": " \t"}, "MemberId can't be empty."),
    ],
)
def test_requests_that_are_not_supported_or_not_complete_are_refused(coordinator, fields, problem):
    assert sent(coordinator, **({"topology": topology(part("0", "lines"))} | fields)) == (
        Error.INVALID_REQUEST,
        problem,
    )


def test_a_join_needs_a_timeout_and_no_tasks(coordinator):
    tasks = [m.StreamsGroupHeartbeatRequest_TaskIds("0", [0])]
    for fields, problem in (
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": tasks}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": tasks}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": tasks}, "WarmupTasks are not supported yet."),
        ({"standby_tasks": None}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
    ):
        request = member(coordinator).full(0, topology=topology(part("0", "lines")))
        for name, value in fields.items():
            setattr(request, name, value)
        answer = coordinator.beat(request)
        assert (answer.error_code, answer.error_message) == (Error.INVALID_REQUEST, problem)


def test_a_changelog_decides_not_on_its_partitions(coordinator):
    wrong = topology(part("0", "lines", changelogs=[("counts", 3)]))
    problem = "Changelog topic counts must have an undefined partition count, but it is set to 3."
    assert sent(coordinator, topology=wrong) == (Error.STREAMS_INVALID_TOPOLOGY, problem)


def test_regular_expressions_are_refused(coordinator):
    wrong = topology(part("0", "lines"))
    wrong.subtopologies[0].source_topic_regex = ["l.*"]
    problem = "Regular expressions for source topics are not supported yet."
    assert sent(coordinator, topology=wrong) == (Error.INVALID_REQUEST, problem)


def test_strangers_and_wrong_epochs_are_told(coordinator):
    (one,) = running(coordinator, "m1")
    for fields, error in (
        ({"member_epoch": 9}, Error.FENCED_MEMBER_EPOCH),
        ({"member_epoch": 1}, Error.FENCED_MEMBER_EPOCH),
        ({"member_epoch": -2}, Error.INVALID_REQUEST),
        ({"member_epoch": -3}, Error.INVALID_REQUEST),
        ({"member_id": "m9"}, Error.UNKNOWN_MEMBER_ID),
        ({"group_id": "h"}, Error.GROUP_ID_NOT_FOUND),
        ({"group_id": "h", "member_epoch": -1}, Error.GROUP_ID_NOT_FOUND),
        ({"member_id": ""}, Error.INVALID_REQUEST),
        ({"topology": topology()}, Error.INVALID_REQUEST),
    ):
        assert coordinator.beat(one.request(**fields)).error_code == error, fields


@pytest.mark.parametrize(
    ("slot", "problem"),
    [
        ((Role.ACTIVE, "7", 0), "Subtopology 7 does not exist in the topology."),
        ((Role.STANDBY, "1", 2), "Task 2 for subtopology 1 is invalid. Number of tasks for this subtopology: 2"),
    ],
)
def test_tasks_that_do_not_exist_are_refused(coordinator, slot, problem):
    (one,) = running(coordinator, "m1")
    one.owned = frozenset({slot})
    assert one.beat().answer.error_message == problem
    assert one.error == Error.INVALID_REQUEST


def test_a_full_group_takes_no_more_members_but_its_own(coordinator):
    coordinator.settings["group.streams.max.size"] = 1
    (one,) = running(coordinator, "m1")
    full = member(coordinator, "m2").join()
    assert full.error == Error.GROUP_MAX_SIZE_REACHED
    assert full.answer.error_message == "The streams group has reached its maximum capacity of 1 members."
    assert one.join().error == 0


# Leaving, and time-outs.


def test_what_a_member_leaves_behind_goes_to_the_others(coordinator):
    one, two = running(coordinator, "m1", "m2")
    left = two.leave().answer
    assert (left.member_epoch, left.status) == (-1, [])
    converge(coordinator, [one])
    assert one.tasks() == ALL
    one.leave()
    assert coordinator.streams().state_name() == "Empty"


def test_silent_members_are_taken_out(coordinator):
    one, two = running(coordinator, "m1", "m2")
    coordinator.advance(SESSION_MS - 1)
    one.beat()
    coordinator.advance(1)
    assert list(coordinator.streams().members) == ["m1"]
    assert two.beat().error == Error.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_its_tasks_is_taken_out(coordinator):
    (one,) = running(coordinator, "m1")
    two = member(coordinator, "m2").join()
    one.beat()
    coordinator.advance(REBALANCE_MS - 1)
    two.beat()
    one.beat()
    coordinator.advance(1)
    assert list(coordinator.streams().members) == ["m2"]


def test_after_a_crash_everybody_has_a_session_to_be_heard_of(coordinator):
    (one,) = running(coordinator, "m1")
    coordinator.advance(SESSION_MS - 1)
    coordinator.crash()
    coordinator.advance(SESSION_MS - 1)
    assert one.beat().error == 0
    coordinator.advance(SESSION_MS)
    assert coordinator.streams().members == {}


def test_a_group_whose_topology_was_lost_gets_it_from_members_that_join_again(coordinator):
    (one,) = running(coordinator, "m1")
    coordinator.run(Effects([Change(m.StreamsGroupTopologyKey("g"), None)]))
    assert one.beat().error == Error.FENCED_MEMBER_EPOCH
    assert one.join().error == 0 and coordinator.streams().topology is not None
    converge(coordinator, [one])
    assert one.tasks() == ALL


def test_one_member_may_shut_the_whole_application_down(coordinator):
    one, two = running(coordinator, "m1", "m2")
    one.send(one.request(shutdown_application=True))
    asked = "Streams group member m1 encountered a fatal error and requested a shutdown for the entire application."
    assert two.beat().status == {Status.SHUTDOWN_APPLICATION: asked}
    one.leave()
    two.leave()
    again = member(coordinator, "m3").join()
    assert Status.SHUTDOWN_APPLICATION not in again.status


# Endpoints.


def endpoints(one: Streamer) -> dict[str, tuple[dict[str, list[int]], dict[str, list[int]]]]:
    def topics(rows: list) -> dict[str, list[int]]:
        return {row.topic: row.partitions for row in rows}

    return {
        row.user_endpoint.host: (topics(row.active_partitions), topics(row.standby_partitions))
        for row in one.answer.partitions_by_user_endpoint
    }


def test_members_are_told_who_serves_which_partitions(coordinator):
    coordinator.configure("g", "streams.num.standby.replicas", "1")
    one, two = member(coordinator, endpoint=("a", 1)).join(), member(coordinator, "m2").join()
    converge(coordinator, [one, two])
    assert (one.tasks(), one.tasks(Role.STANDBY)) == (["0_0", "1_0"], ["1_1"])
    two.endpoint_epoch = -1
    assert endpoints(two.beat()) == {"a": ({"lines": [0], "words": [0]}, {"words": [1]})}
    assert two.beat().answer.partitions_by_user_endpoint is None, "it knows"


# What other parts of the coordinator ask.


def test_members_commit_in_their_epoch_and_for_tasks_that_they_kept_in_earlier_ones(coordinator):
    (one,) = running(coordinator, "m1")
    old = one.epoch
    two = member(coordinator, "m2").join()
    converge(coordinator, [one, two])
    group = coordinator.streams()
    assert group.check_commit("m1", None, one.epoch, transactional=False, version=9) is None
    check = group.check_commit("m1", None, old, transactional=False, version=9)
    assert check is not None
    kept = int(next(task for task in one.tasks() if task[0] == "0")[2])
    check("lines", bytes(16), kept)
    for topic, index in (("lines", 1 - kept), ("else", 0)):
        with pytest.raises(Refused) as refused:
            check(topic, bytes(16), index)
        assert refused.value.error == Error.STALE_MEMBER_EPOCH
    for epoch, version, error in ((one.epoch + 1, 9, Error.STALE_MEMBER_EPOCH), (one.epoch, 8, 35)):
        with pytest.raises(Refused) as refused:
            group.check_commit("m1", None, epoch, transactional=False, version=version)
        assert refused.value.error == error


def test_offsets_of_an_empty_group_may_be_committed_by_anybody(coordinator):
    (one,) = running(coordinator, "m1")
    group = coordinator.streams()
    with pytest.raises(Refused) as refused:
        group.check_commit("", None, -1, transactional=False, version=9)
    assert refused.value.error == Error.UNKNOWN_MEMBER_ID
    assert group.subscribes("lines") and group.subscribes("words") and not group.subscribes("counts")
    one.leave()
    assert group.check_commit("", None, -1, transactional=False, version=9) is None
    assert not group.subscribes("lines")


def test_an_empty_group_is_deleted_with_all_that_it_wrote(coordinator):
    (one,) = running(coordinator, "m1")
    with pytest.raises(Refused) as refused:
        coordinator.machine.delete("g")
    assert refused.value.error == Error.NON_EMPTY_GROUP
    one.leave()
    deletions = coordinator.machine.delete("g")
    keys = {repr(key) for key, value in coordinator.log if value is not None and "m1" not in repr(key)}
    assert keys <= {repr(change.key) for change in deletions}
    for change in deletions:
        coordinator.machine.replay(change.key, None, -1)
    assert coordinator.machine.groups == {}


# Other kinds of groups.


def classic_join(coordinator: StreamsCoordinator):
    protocols = [m.JoinGroupRequest_JoinGroupRequestProtocol("p", b"")]
    request = m.JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols)
    return coordinator.classic("join", request, 3)


def test_an_empty_classic_group_becomes_a_streams_group_and_one_with_members_does_not(coordinator):
    joined = classic_join(coordinator)
    refused = member(coordinator).join()
    assert refused.error == Error.GROUP_ID_NOT_FOUND
    assert refused.answer.error_message == "Group g is not a streams group."
    leaving = [m.LeaveGroupRequest_MemberIdentity(joined.member_id)]
    coordinator.classic("leave", m.LeaveGroupRequest("g", members=leaving), 3)
    assert member(coordinator).join().error == 0
    assert coordinator.streams().kind == "streams"


def test_members_of_the_classic_protocol_find_no_place_until_the_group_is_empty(coordinator):
    (one,) = running(coordinator, "m1")
    assert classic_join(coordinator).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    for command, request, version in (
        ("sync", m.SyncGroupRequest("g", 1, "m1"), 3),
        ("heartbeat", m.HeartbeatRequest("g", 1, "m1"), 3),
    ):
        assert coordinator.classic(command, request, version).error_code == Error.UNKNOWN_MEMBER_ID
    one.leave()
    assert classic_join(coordinator).error_code == 0
    assert coordinator.machine.groups["g"].kind == "classic"

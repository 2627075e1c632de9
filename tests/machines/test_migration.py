"""From the classic protocol to the consumer protocol and back, with members of both kinds in one group."""

from __future__ import annotations

import pytest

from moldau.machines.classic.group import ClassicGroup, State
from moldau.machines.consumer.migration import read
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.machines.classic_members import GUEST_SESSION_MS, REBALANCE_MS, Guest, assignment
from tests.machines.consumers import SESSION_MS, Consumer, Coordinator, converge


@pytest.fixture
def coordinator() -> Coordinator:
    made = Coordinator()
    made.create("t", 4)
    return made


def classic_group(coordinator: Coordinator) -> ClassicGroup:
    group = coordinator.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    return group


def mixed(coordinator: Coordinator) -> tuple[Guest, Consumer]:
    """A guest of old, and the member that upgraded the group, with two partitions each."""
    guest = Guest(coordinator).join().sync()
    new = Consumer(coordinator, "new", ["t"]).join()
    settle(coordinator, [guest], [new])
    assert (len(guest.owned), len(new.owned)) == (2, 2)
    return guest, new


def settle(coordinator: Coordinator, guests: list[Guest], consumers: list[Consumer]) -> None:
    for _ in range(4):
        converge(coordinator, consumers, 1)
        for guest in guests:
            guest.go_on()


def test_the_first_member_of_the_new_protocol_upgrades_the_group(coordinator):
    guest, new = mixed(coordinator)
    group = coordinator.group()
    assert group.guests == 1 and set(group.members) == {guest.id, "new"}
    assert guest.owned.isdisjoint(index for _, index in new.owned)
    assert set(coordinator.replayed().groups["g"].members) == {guest.id, "new"}


def test_a_guest_keeps_what_it_has_until_it_is_asked_for_it(coordinator):
    guest = Guest(coordinator).join().sync()
    new = Consumer(coordinator, "new", ["t"]).join()
    assert not new.owned
    assert guest.beat() == Error.REBALANCE_IN_PROGRESS
    assert len(guest.join().sync().owned) == 2, "it is told to give up two"
    assert not new.beat().owned
    assert guest.beat() == Error.REBALANCE_IN_PROGRESS
    guest.join().sync()
    assert guest.beat() == Error.NONE
    assert len(new.beat().owned) == 2


def test_those_who_wait_in_a_rebalance_are_told_to_join_again(coordinator):
    one = Guest(coordinator).join().sync()
    two = Guest(coordinator)
    two.id = two.ask_join().member_id
    joining = m.JoinGroupRequest_JoinGroupRequestProtocol(
        "range", b"\0\0" + codec.encode(m.ConsumerProtocolSubscription(["t"]), 0)
    )
    request = m.JoinGroupRequest("g", GUEST_SESSION_MS, REBALANCE_MS, two.id, None, "consumer", [joining])
    assert coordinator.classic("join", request, 9) is None
    waiting = classic_group(coordinator).members[two.id].joining
    new = Consumer(coordinator, "new", ["t"]).join()
    assert waiting is not None and waiting.answer.error_code == Error.REBALANCE_IN_PROGRESS
    settle(coordinator, [one, two.join().sync()], [new])
    assert sorted(map(len, (one.owned, two.owned, new.owned))) == [1, 1, 2]


def test_a_guest_can_join_a_consumer_group(coordinator):
    new = Consumer(coordinator, "new", ["t"]).join()
    guest = Guest(coordinator).join()
    assert not guest.error
    guest.sync()
    settle(coordinator, [guest], [new])
    assert (len(guest.owned), len(new.owned)) == (2, 2)


def test_guests_are_checked(coordinator):
    guest, _ = mixed(coordinator)
    assert Guest(coordinator, protocol="roundrobin").join().error == Error.INCONSISTENT_GROUP_PROTOCOL
    guest.generation += 1
    assert guest.beat() == Error.ILLEGAL_GENERATION
    assert guest.sync().error == Error.ILLEGAL_GENERATION
    guest.id = "new"
    assert guest.beat() == Error.UNKNOWN_MEMBER_ID
    guest.id = "nobody"
    assert guest.beat() == Error.UNKNOWN_MEMBER_ID


def test_a_guest_that_leaves_makes_room(coordinator):
    guest, new = mixed(coordinator)
    assert guest.leave().members[0].error_code == 0
    converge(coordinator, [new])
    assert len(new.owned) == 4 and coordinator.group().guests == 0


def test_a_guest_that_is_silent_is_taken_out_after_its_own_session(coordinator):
    guest, _ = mixed(coordinator)
    coordinator.advance(GUEST_SESSION_MS)
    assert list(coordinator.group().members) == ["new"]
    assert guest.beat() == Error.UNKNOWN_MEMBER_ID


def test_a_guest_that_was_taken_out_unawares_comes_in_again_under_its_old_id_with_nothing(coordinator):
    guest, new = mixed(coordinator)
    coordinator.advance(GUEST_SESSION_MS + 1)
    settle(coordinator, [], [new])
    assert len(new.owned) == 4
    had, old_id = guest.owned, guest.id
    assert guest.join().error == Error.NONE and guest.id == old_id and guest.owned == had
    assert guest.sync().owned == frozenset()
    settle(coordinator, [guest], [new])
    assert len(guest.owned) == len(new.owned) == 2 and guest.owned.isdisjoint(index for _, index in new.owned)


def test_a_guest_that_does_not_join_when_it_should_is_taken_out(coordinator):
    guest = Guest(coordinator).join().sync()
    new = Consumer(coordinator, "new", ["t"]).join()
    for _ in range(4):
        assert guest.beat() == Error.REBALANCE_IN_PROGRESS
        coordinator.advance(REBALANCE_MS // 4)
        new.beat()
    assert list(coordinator.group().members) == ["new"]


def test_when_the_last_new_member_goes_the_group_is_classic_again(coordinator):
    guest, new = mixed(coordinator)
    had = guest.owned
    new.leave()
    group = classic_group(coordinator)
    assert set(group.members) == {guest.id} and group.protocol == "range"
    assert read(m.ConsumerProtocolAssignment, group.members[guest.id].assignment).assigned_partitions[
        0
    ].partitions == sorted(had)
    coordinator.advance(0)
    assert group.state is State.PREPARING, "what the new member had must be shared out"
    guest.generation = group.generation
    guest.go_on()
    assert len(guest.owned) == 4 and group.state is State.STABLE
    assert isinstance(coordinator.replayed().groups["g"], ClassicGroup)


def test_a_new_member_that_falls_silent_downgrades_the_group_too(coordinator):
    guest, _ = mixed(coordinator)
    for _ in range(SESSION_MS // 5000 + 1):
        coordinator.advance(5000)
        guest.go_on()
        if isinstance(coordinator.machine.groups["g"], ClassicGroup):
            return
    raise AssertionError("the group is still a consumer group")


def test_a_static_member_that_comes_back_as_a_guest_takes_its_place_in_a_classic_group(coordinator):
    guest = Guest(coordinator).join().sync()
    new = Consumer(coordinator, "new", ["t"], instance_id="i").join()
    settle(coordinator, [guest], [new])
    back = Guest(coordinator, instance_id="i").join()
    group = classic_group(coordinator)
    assert set(group.members) == {guest.id, back.id}
    assert back.sync().owned == {index for _, index in new.owned}
    coordinator.advance(0)
    assert group.state is State.STABLE, "nobody else is disturbed"


def test_a_static_guest_comes_back_as_a_member_of_the_new_protocol(coordinator):
    guest = Guest(coordinator, instance_id="i").join().sync()
    other = Guest(coordinator)
    assert not Consumer(coordinator, "new", ["t"], instance_id="i").join().error
    assert list(coordinator.group().members) == ["new"] and guest.beat() == Error.FENCED_INSTANCE_ID
    assert not other.join().error


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_without_the_policy_there_is_no_upgrade(policy):
    coordinator = Coordinator(group_consumer_migration_policy=policy)
    coordinator.create("t", 4)
    Guest(coordinator).join().sync()
    assert Consumer(coordinator, "new", ["t"]).join().error == Error.GROUP_ID_NOT_FOUND
    assert classic_group(coordinator).state is State.STABLE


def test_without_the_policy_there_is_no_downgrade():
    coordinator = Coordinator(group_consumer_migration_policy="upgrade")
    coordinator.create("t", 4)
    guest, new = mixed(coordinator)
    new.leave()
    assert set(coordinator.group().members) == {guest.id}


def test_without_any_migration_a_consumer_group_takes_no_guests():
    coordinator = Coordinator(group_consumer_migration_policy="disabled")
    coordinator.create("t", 4)
    Consumer(coordinator, "new", ["t"]).join()
    assert Guest(coordinator).join().error == Error.INCONSISTENT_GROUP_PROTOCOL


def test_groups_that_do_not_consume_or_whose_assignor_is_their_own_are_not_upgraded(coordinator):
    guest = Guest(coordinator).join()
    row = m.SyncGroupRequest_SyncGroupRequestAssignment(guest.id, assignment([0], b"mine"))
    request = m.SyncGroupRequest("g", guest.generation, guest.id, None, "consumer", "range", [row])
    assert coordinator.classic("sync", request, 5).error_code == 0
    answer = coordinator.beat(Consumer(coordinator, "new", ["t"]).full(0))
    assert answer.error_code == Error.GROUP_ID_NOT_FOUND and "custom assignor" in answer.error_message


def test_an_empty_group_changes_sides_at_once(coordinator):
    Guest(coordinator).join().sync().leave()
    new = Consumer(coordinator, "new", ["t"]).join()
    assert len(new.owned) == 4
    new.leave()
    assert len(Guest(coordinator).join().sync().owned) == 4
    assert isinstance(coordinator.replayed().groups["g"], ClassicGroup)

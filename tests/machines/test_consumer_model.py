"""Consumer groups under random members, losses, crashes and changes of topics.

A partition never has two owners, neither in the coordinator's books nor among clients that are members; epochs never go
back; what is replayed is what was lived through; and once everybody answers, all members have what the target says.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.reconciling import State, owned_slots
from tests.machines.consumers import Consumer, Coordinator, converge
from tests.machines.group_model import MEMBERS, GroupModel

NAMES = ["ta", "tb", "other"]
WISHES = st.one_of(
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(lambda names: (names, None)),
    st.sampled_from(["^t.*", "t[ab]", "none"]).map(lambda regex: ([], regex)),
)


class ConsumerGroups(GroupModel):
    topics = NAMES
    soft: ClassVar = {"seen", "resolved"}

    @initialize()
    def start(self) -> None:
        self.begin(Coordinator(), ta=3, tb=2)

    # What clients do.

    @rule(member=st.sampled_from(MEMBERS), wish=WISHES, static=st.booleans(), assignor=st.sampled_from([None, "range"]))
    def join(self, member, wish, static, assignor) -> None:
        topics, regex = wish
        instance = f"i{member}" if static else None
        old = self.members.pop(member, None)
        if old is not None and old.instance_id is not None:
            old.leave(-2 if old.instance_id == instance else -1)  # an instance must let go before it comes back
        consumer = Consumer(self.coordinator, member, topics, regex, instance, assignor)
        self.members[member] = consumer.join()

    @precondition(lambda self: self.members)
    @rule(data=st.data(), wish=WISHES)
    def subscribe_anew(self, data, wish) -> None:
        consumer = self.drawn(data)
        if consumer.epoch > 0:
            consumer.topics, consumer.regex = wish[0], wish[1] or ""
            consumer.send(consumer.full(consumer.epoch))

    @precondition(lambda self: any(c.instance_id and c.epoch > 0 for c in self.members.values()))
    @rule(data=st.data())
    def restart_static(self, data) -> None:
        """Away for a moment, back under a new id."""
        known = sorted(name for name, c in self.members.items() if c.instance_id and c.epoch > 0)
        old = self.members[data.draw(st.sampled_from(known))]
        name, instance = next(n for n in MEMBERS if self.members.get(n) is old), old.instance_id
        old.leave(-2)
        if not old.error:
            new_id = f"{name}+{len(self.coordinator.log)}"
            again = Consumer(self.coordinator, new_id, old.topics, old.regex, instance, old.assignor)
            self.members[name] = again.join()
            assert not again.error

    # What happens to them.

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name) -> None:
        if name in self.coordinator.cluster.topics:
            self.coordinator.delete(name)

    @rule()
    def everybody_answers(self) -> None:
        self.coordinator.advance(11_000)
        converge(self.coordinator, list(self.members.values()))
        self.check_converged()

    def check_converged(self) -> None:
        if not self.members:
            return
        group = self.coordinator.group()
        assert group.epoch == group.target_epoch
        assert set(group.members) == {consumer.id for consumer in self.members.values()}
        topics = self.coordinator.cluster.topics
        wanted = {name for member in group.members.values() for name in group.topics_of(member) if name in topics}
        everything = {(topics[name].id, index) for name in wanted for index in topics[name].partitions}
        owned = [slot for consumer in self.members.values() for slot in consumer.owned]
        assert sorted(owned) == sorted(everything)
        for consumer in self.members.values():
            member = group.members[consumer.id]
            assert (member.state, member.epoch) == (State.STABLE, group.epoch)
            assert set(owned_slots(member.assigned)) == consumer.owned

    # What always holds.

    @invariant()
    def partitions_have_one_owner(self) -> None:
        for group in self.coordinator.machine.groups.values():
            assert isinstance(group, ConsumerGroup)
            books = [
                (slot, member.id)
                for member in group.members.values()
                for slot in (*owned_slots(member.assigned), *owned_slots(member.revoking))
            ]
            assert len(books) == len({slot for slot, _ in books})
            owners = {(topic, index): who for topic, row in group.owners.items() for index, who in row.items()}
            assert owners == dict(books)

    @invariant()
    def clients_own_only_what_nobody_else_owns(self) -> None:
        """Clients that were taken out find out by themselves, by their own clocks."""
        if not self.coordinator.machine.groups:
            return
        members = self.coordinator.group().members
        owned = [slot for c in self.members.values() if c.id in members and c.epoch > 0 for slot in c.owned]
        assert len(owned) == len(set(owned))


ConsumerGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConsumerGroups = ConsumerGroups.TestCase

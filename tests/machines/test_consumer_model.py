"""Consumer groups under random members, losses, crashes and changes of topics.

A partition never has two owners, neither in the coordinator's books nor among clients that are members; epochs never go
back; what is replayed is what was lived through; and once everybody answers, all members have what the target says.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.machines.consumer import ConsumerGroup
from moldau.machines.groups import Groups
from moldau.machines.reconciling import State, owned_slots
from tests.machines.consumers import REBALANCE_MS, SESSION_MS, Consumer, Coordinator, converge

NAMES = ["ta", "tb", "other"]
MEMBERS = ["m0", "m1", "m2", "m3", "m4"]
WISHES = st.one_of(
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(lambda names: (names, None)),
    st.sampled_from(["^t.*", "t[ab]", "none"]).map(lambda regex: ([], regex)),
)


class ConsumerGroups(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.coordinator = Coordinator()
        self.consumers: dict[str, Consumer] = {}
        self.epochs: dict[str, tuple[int, int]] = {}
        self.coordinator.create("ta", 3)
        self.coordinator.create("tb", 2)

    def members(self) -> list[str]:
        return sorted(self.consumers)

    # What clients do.

    @rule(member=st.sampled_from(MEMBERS), wish=WISHES, static=st.booleans(), assignor=st.sampled_from([None, "range"]))
    def join(self, member, wish, static, assignor) -> None:
        topics, regex = wish
        instance = f"i{member}" if static else None
        old = self.consumers.pop(member, None)
        if old is not None and old.instance_id is not None:
            old.leave(-2 if old.instance_id == instance else -1)  # an instance must let go before it comes back
        consumer = Consumer(self.coordinator, member, topics, regex, instance, assignor)
        self.consumers[member] = consumer.join()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), settle=st.booleans(), lost=st.booleans())
    def beat(self, data, settle, lost) -> None:
        consumer = self.consumers[data.draw(st.sampled_from(self.members()))]
        if settle:
            consumer.settle()
        if consumer.epoch > 0:
            consumer.send(consumer.full(consumer.epoch), lost=lost)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def short_beat(self, data) -> None:
        consumer = self.consumers[data.draw(st.sampled_from(self.members()))]
        if consumer.epoch > 0 and not consumer.unsure:
            consumer.send(consumer.request())

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def send_again(self, data) -> None:
        """A duplicate of the last request, of which the client hears nothing."""
        consumer = self.consumers[data.draw(st.sampled_from(self.members()))]
        if consumer.epoch > 0 and consumer.last.member_epoch > 0:
            consumer.send(consumer.last, lost=True)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), wish=WISHES)
    def subscribe_anew(self, data, wish) -> None:
        consumer = self.consumers[data.draw(st.sampled_from(self.members()))]
        if consumer.epoch > 0:
            consumer.topics, consumer.regex = wish[0], wish[1] or ""
            consumer.send(consumer.full(consumer.epoch))

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data) -> None:
        self.consumers.pop(data.draw(st.sampled_from(self.members()))).leave()

    @precondition(lambda self: any(c.instance_id and c.epoch > 0 for c in self.consumers.values()))
    @rule(data=st.data())
    def restart_static(self, data) -> None:
        """Away for a moment, back under a new id."""
        known = sorted(name for name, c in self.consumers.items() if c.instance_id and c.epoch > 0)
        old = self.consumers[data.draw(st.sampled_from(known))]
        name, instance = next(n for n in MEMBERS if self.consumers.get(n) is old), old.instance_id
        old.leave(-2)
        if not old.error:
            new_id = f"{name}+{len(self.coordinator.log)}"
            again = Consumer(self.coordinator, new_id, old.topics, old.regex, instance, old.assignor)
            self.consumers[name] = again.join()
            assert not again.error

    # What happens to them.

    @rule(ms=st.sampled_from([100, 1100, 11_000]))
    def time_passes(self, ms) -> None:
        self.coordinator.advance(ms)

    @rule(silent=st.sampled_from(MEMBERS))
    def somebody_is_silent(self, silent) -> None:
        """All others go on through a session timeout."""
        for _ in range(SESSION_MS // REBALANCE_MS + 1):
            self.coordinator.advance(REBALANCE_MS - 1)
            for name, consumer in self.consumers.items():
                if name != silent and consumer.epoch > 0:
                    consumer.settle()
                    consumer.beat()
        if silent in self.consumers and self.coordinator.machine.groups:
            assert self.consumers[silent].id not in self.coordinator.group().members
            del self.consumers[silent]

    @rule()
    def crash(self) -> None:
        self.coordinator.crash()

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 4))
    def create_or_extend(self, name, count) -> None:
        if name not in self.coordinator.cluster.topics:
            self.coordinator.create(name, count)
        else:
            self.coordinator.extend(name, count)

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name) -> None:
        if name in self.coordinator.cluster.topics:
            self.coordinator.delete(name)

    @rule()
    def everybody_answers(self) -> None:
        self.coordinator.advance(11_000)
        converge(self.coordinator, list(self.consumers.values()))
        self.check_converged()

    def check_converged(self) -> None:
        if not self.consumers:
            return
        group = self.coordinator.group()
        assert group.epoch == group.target_epoch
        assert set(group.members) == {consumer.id for consumer in self.consumers.values()}
        topics = self.coordinator.cluster.topics
        wanted = {name for member in group.members.values() for name in group.topics_of(member) if name in topics}
        everything = {(topics[name].id, index) for name in wanted for index in topics[name].partitions}
        owned = [slot for consumer in self.consumers.values() for slot in consumer.owned]
        assert sorted(owned) == sorted(everything)
        for consumer in self.consumers.values():
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
        owned = [slot for c in self.consumers.values() if c.id in members and c.epoch > 0 for slot in c.owned]
        assert len(owned) == len(set(owned))

    @invariant()
    def epochs_never_go_back(self) -> None:
        for group in self.coordinator.machine.groups.values():
            assert isinstance(group, ConsumerGroup)
            before = self.epochs.get(group.id, (0, 0))
            assert (group.epoch, group.target_epoch) >= before and group.target_epoch >= before[1]
            assert group.target_epoch <= group.epoch
            assert all(member.epoch <= group.target_epoch for member in group.members.values())
            self.epochs[group.id] = group.epoch, group.target_epoch

    @invariant()
    def replay_is_what_was(self) -> None:
        assert books(self.coordinator.replayed()) == books(self.coordinator.machine)


def books(machine: Groups) -> dict[str, dict[str, object]]:
    """All that is not soft."""
    soft = {"seen", "resolved"}
    return {name: {k: v for k, v in vars(g).items() if k not in soft} for name, g in machine.groups.items()}


ConsumerGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConsumerGroups = ConsumerGroups.TestCase

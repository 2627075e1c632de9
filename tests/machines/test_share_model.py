"""Share groups under random members, losses, crashes and changes of topics.

Epochs never go back; what is replayed is what was lived through; nothing is assigned that has no state; and once
everybody answers, every partition that somebody subscribes to is assigned, to members that subscribe to it.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.machines.effects import Effects
from moldau.machines.groups import Groups
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.offsets import alter, delete_offsets, offsets_deleted
from moldau.wire.refusal import Refused
from tests.machines.shares import Sharer, Shares, settle

NAMES = ["ta", "tb", "other"]
MEMBERS = ["m0", "m1", "m2", "m3", "m4"]
WISHES = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)


class ShareGroups(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.home = Shares()
        self.sharers: dict[str, Sharer] = {}
        self.epochs = (0, 0)
        self.home.create("ta", 3)
        self.home.create("tb", 1)

    def group(self) -> ShareGroup | None:
        group = self.home.machine.groups.get("g")
        assert group is None or isinstance(group, ShareGroup)
        return group

    @rule(member=st.sampled_from(MEMBERS), wish=WISHES, crash=st.booleans())
    def join(self, member, wish, crash) -> None:
        self.sharers[member] = Sharer(self.home, member, wish).join(crash=crash)

    @precondition(lambda self: self.sharers)
    @rule(data=st.data(), lost=st.booleans(), crash=st.booleans())
    def beat(self, data, lost, crash) -> None:
        self.pick(data).beat(lost=lost, crash=crash)

    @precondition(lambda self: self.sharers)
    @rule(data=st.data(), wish=WISHES)
    def subscribe(self, data, wish) -> None:
        sharer = self.pick(data)
        sharer.topics = wish
        sharer.send(sharer.epoch, subscribed_topic_names=wish)

    @precondition(lambda self: self.sharers)
    @rule(data=st.data())
    def leave(self, data) -> None:
        sharer = self.pick(data)
        del self.sharers[sharer.id]
        sharer.leave()

    @precondition(lambda self: self.sharers)
    @rule(data=st.data())
    def fall_silent(self, data) -> None:
        sharer = self.pick(data)
        del self.sharers[sharer.id]

    def pick(self, data: st.DataObject) -> Sharer:
        return self.sharers[data.draw(st.sampled_from(sorted(self.sharers)))]

    @rule(ms=st.sampled_from([100, 1000, 20_000, 46_000]))
    def pass_time(self, ms) -> None:
        self.home.advance(ms)

    @rule()
    def crash(self) -> None:
        self.home.crash()

    @rule(down=st.booleans())
    def change_share_coordinator(self, down) -> None:
        self.home.down = down

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 5))
    def create_or_extend(self, name, count) -> None:
        if name in self.home.cluster.topics:
            self.home.extend(name, count)
        else:
            self.home.create(name, count)

    @rule(name=st.sampled_from(NAMES))
    def drop_topic(self, name) -> None:
        if name in self.home.cluster.topics:
            self.home.drop_topic(name)

    @rule(name=st.sampled_from(NAMES), fails=st.booleans())
    def delete_offsets(self, name, fails) -> None:
        try:
            step, _ = delete_offsets(self.home.machine, "g", [name])
        except Refused:
            return
        self.home.run(Effects(step.changes))
        if step.request and not fails:
            self.home.delete_states(step.request)
            done = offsets_deleted(self.home.machine, "g", [row.topic_id for row in step.request.topics])
            self.home.run(Effects(done))

    @rule(name=st.sampled_from(NAMES), offset=st.integers(0, 9))
    def alter(self, name, offset) -> None:
        topic = self.home.cluster.topics.get(name)
        try:
            step = alter(self.home.machine, "g", {topic.id: {0: offset}} if topic else {})
        except Refused:
            return
        self.home.run(Effects(step.changes))
        if step.request:
            self.home.initialize(step.request)
            assert self.home.down or self.home.offsets["g", topic.id, 0] == offset

    @rule()
    def come_to_rest(self) -> None:
        self.home.down = False
        self.home.advance(46_000)  # those who are silent are gone
        settle(self.home, list(self.sharers.values()))
        group, topics = self.group(), self.home.cluster.topics
        wanted = {
            (topics[name].id, index)
            for sharer in self.sharers.values()
            for name in sharer.topics
            if name in topics
            for index in topics[name].partitions
        }
        assert set().union(*(sharer.has for sharer in self.sharers.values())) == wanted
        for sharer in self.sharers.values():
            ids = {topics[name].id for name in sharer.topics if name in topics}
            assert {topic for topic, _ in sharer.has} <= ids
            assert group and sharer.epoch == group.epoch == group.target_epoch

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.group()
        if group is not None:
            assert group.epoch >= self.epochs[0] and group.target_epoch >= self.epochs[1]
            assert group.target_epoch <= group.epoch
            assert all(member.epoch <= group.target_epoch for member in group.members.values())
            self.epochs = (group.epoch, group.target_epoch)

    @invariant()
    def nothing_is_initialized_without_a_state(self) -> None:
        group = self.group()
        for topic, known in group.known_states().initialized.items() if group else ():
            assert all(("g", topic, index) in self.home.offsets for index in known.partitions)

    @invariant()
    def replaying_is_living(self) -> None:
        assert picture(self.home.replayed()) == picture(self.home.machine)


def picture(machine: Groups) -> object:
    """The hard state of all groups."""
    soft = ("seen", "setting_up")
    return {
        group_id: {name: value for name, value in vars(group).items() if name not in soft}
        for group_id, group in machine.groups.items()
    }


TestShareGroups = ShareGroups.TestCase
TestShareGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

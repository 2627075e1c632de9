"""The share coordinator's machine: epochs that fence, snapshots after updates, and a log that says it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moldau.broker import coordinators
from moldau.machines.effects import Change
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.share.batches import StateBatch, combine
from moldau.machines.share.state import COLD_AFTER, UPDATES_PER_SNAPSHOT, Key, ShareStates, State, Write
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record
from moldau.wire.refusal import Refused

TOPIC = "__share_group_state"
T1, T2 = b"1" * 16, b"2" * 16
HOUR = 3_600_000


def cluster() -> Cluster:
    image = Cluster()
    for name, topic_id in (("one", T1), ("two", T2)):
        image.replay(m.TopicRecord(name, topic_id))
        for index in range(2):
            image.replay(m.PartitionRecord(index, topic_id, replicas=[1], isr=[1], leader=1))
    return image


@dataclass
class Bench:
    """A machine, the log that it writes, and a clock."""

    updates: int = 3
    now_ms: int = 1_700_000_000_000
    start: int = 0
    log: list[Record] = field(default_factory=list)
    image: Cluster = field(default_factory=cluster)

    def __post_init__(self) -> None:
        self.machine = self.load()

    def load(self) -> ShareStates:
        """A machine as a restart makes it."""
        values = {UPDATES_PER_SNAPSHOT: self.updates, COLD_AFTER: HOUR}
        machine = ShareStates(values.__getitem__, lambda: self.image, self.start)
        for record in self.log:
            key, value = coordinators.decode(TOPIC, record)
            machine.replay(key, value, -1)
        return machine

    def run(self, changes: list[Change]) -> list[str]:
        """As the runtime does; returns what was written."""
        for change in changes:
            self.log.append(Record(0, self.now_ms, *coordinators.encode(change)))
            self.machine.replay(change.key, change.value, -1)
        return [change.key.SCHEMA.name.removesuffix("Key") for change in changes]

    def prune(self) -> None:
        needed = self.machine.needed_from()
        del self.log[: needed - self.start]
        self.start = needed

    def initialize(self, key: Key, state_epoch: int = 0, start: int = 0) -> list[str]:
        return self.run(self.machine.initialize(key, state_epoch, start, self.now_ms))

    def read(self, key: Key, leader_epoch: int) -> list[str]:
        return self.run(self.machine.read(key, leader_epoch, self.now_ms))

    def write(self, key: Key, *batches: tuple[int, int, int, int], **said: int) -> list[str]:
        fields = {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, "complete_count": 0} | said
        write = Write(**fields, batches=[StateBatch(*batch) for batch in batches])
        return self.run(self.machine.write(key, write, self.now_ms))


K = Key("g", T1, 0)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.initialize(K)
    return bench


def refused(what: Callable[..., Any], *args: Any, **named: Any) -> Error:
    with pytest.raises(Refused) as caught:
        what(*args, **named)
    return caught.value.error


def test_key_reads_as_kafka_writes_it() -> None:
    assert str(Key("g", bytes(range(16)), 7)) == "g:AAECAwQFBgcICQoLDA0ODw:7"


def test_updates_are_followed_by_a_snapshot(bench: Bench) -> None:
    written = [bench.write(K, (offset, offset, 2, 1)) for offset in range(5)]
    assert written == [["ShareUpdate"]] * 3 + [["ShareSnapshot"], ["ShareUpdate"]]
    assert bench.machine.states[K].batches == [(0, 4, 2, 1)]
    assert bench.machine.states[K].snapshot_epoch == 1


def test_start_offset_takes_away_what_lies_before_it(bench: Bench) -> None:
    bench.write(K, (0, 9, 2, 1), (10, 12, 0, 1))
    bench.write(K, start_offset=11)
    state = bench.machine.states[K]
    assert (state.start_offset, state.batches) == (11, [(11, 12, 0, 1)])


def test_what_is_not_said_stays_as_it_was(bench: Bench) -> None:
    bench.read(K, 4)
    for _ in range(5):
        bench.write(K, start_offset=-1, leader_epoch=-1, state_epoch=-1)
    state = bench.machine.states[K]
    assert (state.start_offset, state.leader_epoch, state.state_epoch) == (0, 4, 0)


def test_read_fences_older_leaders(bench: Bench) -> None:
    assert bench.read(K, 4) == ["ShareUpdate"]
    assert bench.read(K, 4) == []
    assert bench.read(K, -1) == []
    assert refused(bench.read, K, 3) == Error.FENCED_LEADER_EPOCH
    assert refused(bench.write, K, leader_epoch=3) == Error.FENCED_LEADER_EPOCH
    bench.write(K, leader_epoch=5)
    state = bench.machine.summary(K)
    assert state is not None
    assert state.leader_epoch == 4, "a write makes no leader"


def test_initializing_again_fences_older_states(bench: Bench) -> None:
    bench.write(K, (0, 9, 2, 1))
    bench.initialize(K, state_epoch=2, start=5)
    state = bench.machine.states[K]
    assert (state.state_epoch, state.start_offset, state.batches, state.snapshot_epoch) == (2, 5, [], 1)
    assert refused(bench.write, K, state_epoch=1) == Error.FENCED_STATE_EPOCH
    assert refused(bench.initialize, K, state_epoch=1) == Error.FENCED_STATE_EPOCH


def test_unknown_share_partitions_and_topics_are_refused(bench: Bench) -> None:
    elsewhere = Key("g", b"9" * 16, 0)
    assert refused(bench.initialize, elsewhere) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refused(bench.initialize, Key("g", T1, 2)) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refused(bench.initialize, Key("g", T1, -1)) == Error.INVALID_REQUEST
    assert refused(bench.read, Key("h", T1, 0), 0) == Error.INVALID_REQUEST
    assert refused(bench.write, Key("h", T1, 0)) == Error.INVALID_REQUEST
    assert bench.machine.summary(Key("h", T1, 0)) is None


def test_deleting_leaves_nothing(bench: Bench) -> None:
    bench.write(K, (0, 9, 2, 1))
    assert bench.run(bench.machine.delete(K)) == ["ShareSnapshot"]
    assert bench.run(bench.machine.delete(K)) == []
    assert bench.load().states == {}


def test_share_partitions_of_a_deleted_topic_go(bench: Bench) -> None:
    bench.initialize(Key("g", T2, 1))
    bench.run(bench.machine.of_deleted_topic(T1))
    assert list(bench.machine.states) == [Key("g", T2, 1)]


def test_topic_that_went_unseen_is_forgotten_when_its_state_is_loaded(bench: Bench) -> None:
    bench.image.replay(m.RemoveTopicRecord(T1))
    bench.run(bench.load().loaded(bench.now_ms).changes)
    assert bench.machine.states == {}


def test_head_of_the_log_goes_when_cold_share_partitions_have_new_snapshots(bench: Bench) -> None:
    warm = Key("g", T2, 0)
    bench.initialize(warm)
    for _ in range(8):
        bench.now_ms += HOUR // 4
        bench.write(warm)
    assert bench.machine.needed_from() == 0
    assert bench.run(bench.machine.refresh_cold(bench.now_ms)) == ["ShareSnapshot"]
    assert bench.machine.states[K].snapshot_epoch == 1
    before = dict(bench.machine.states)
    bench.prune()
    assert len(bench.log) < 5
    assert bench.load().states == before
    bench.now_ms += 2 * HOUR
    bench.run(bench.machine.refresh_cold(bench.now_ms))
    assert bench.run(bench.machine.refresh_cold(bench.now_ms + 9 * HOUR)) == [], "all are cold"


KEYS = [Key("g", T1, 0), Key("g", T1, 1), Key("h", T2, 0)]
EPOCHS = st.integers(-1, 3)


class ShareStateMachine(RuleBasedStateMachine):
    """Whatever is written, the log says what was lived through, and the state what the writers said."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.model: dict[Key, State] = {}

    def attempt(self, what: Callable[[], Any]) -> Error:
        try:
            what()
        except Refused as error:
            return error.error
        return Error.NONE

    @rule(key=st.sampled_from(KEYS), epoch=st.integers(0, 3), start=st.integers(-1, 9))
    def initialize(self, key: Key, epoch: int, start: int) -> None:
        error = self.attempt(lambda: self.bench.initialize(key, epoch, start))
        known = self.model.get(key)
        if known is not None and known.state_epoch > epoch:
            assert error == Error.FENCED_STATE_EPOCH
        else:
            assert error == Error.NONE
            self.model[key] = State(0, epoch, 0, start, 0, 0, 0)

    @rule(key=st.sampled_from(KEYS), epoch=EPOCHS)
    def read(self, key: Key, epoch: int) -> None:
        error = self.attempt(lambda: self.bench.read(key, epoch))
        if key not in self.model:
            assert error == Error.INVALID_REQUEST
        elif epoch != -1 and epoch < self.model[key].leader_epoch:
            assert error == Error.FENCED_LEADER_EPOCH
        else:
            self.model[key].leader_epoch = max(epoch, self.model[key].leader_epoch)

    @rule(key=st.sampled_from(KEYS), leader=EPOCHS, state=EPOCHS, start=st.integers(-1, 30), data=st.data())
    def write(self, key: Key, leader: int, state: int, start: int, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, 30))
        batch = StateBatch(first, first + data.draw(st.integers(0, 5)), data.draw(st.sampled_from([0, 2, 4])), 1)
        said = {"leader_epoch": leader, "state_epoch": state, "start_offset": start}
        error = self.attempt(lambda: self.bench.write(key, batch, **said))
        known = self.model.get(key)
        if known is None:
            assert error == Error.INVALID_REQUEST
        elif -1 < leader < known.leader_epoch:
            assert error == Error.FENCED_LEADER_EPOCH
        elif -1 < state < known.state_epoch:
            assert error == Error.FENCED_STATE_EPOCH
        else:
            known.start_offset = known.start_offset if start == -1 else start
            batches = combine((), [batch], start)
            known.batches = combine(known.batches, batches, known.start_offset)

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key: Key) -> None:
        self.bench.run(self.bench.machine.delete(key))
        self.model.pop(key, None)

    @rule(hours=st.integers(0, 3))
    def refresh(self, hours: int) -> None:
        self.bench.now_ms += hours * HOUR
        self.bench.run(self.bench.machine.refresh_cold(self.bench.now_ms))

    @rule()
    def prune(self) -> None:
        self.bench.prune()

    @invariant()
    def replay_gives_what_was_lived_through(self) -> None:
        lived, loaded = self.bench.machine, self.bench.load()
        assert {key: asdict(state) for key, state in lived.states.items()} == {
            key: asdict(state) for key, state in loaded.states.items()
        }
        assert lived.next_offset == loaded.next_offset

    @invariant()
    def state_is_what_was_said(self) -> None:
        def told(state: State) -> tuple[Any, ...]:
            return state.start_offset, state.leader_epoch, state.state_epoch, state.batches

        assert {key: told(state) for key, state in self.bench.machine.states.items()} == {
            key: told(state) for key, state in self.model.items()
        }


ShareStateMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestShareStates = ShareStateMachine.TestCase

"""Members of a share group that take, settle, vanish and come back, on a whole node that restarts and crashes.

What machines/test_share_partition.py does with the machine alone, here the log, the share coordinator and its topic,
sessions and waits take part in.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from moldau.wire.errors import Error
from tests.broker.conftest import World
from tests.broker.shares import Member, acquired, produce
from tests.broker.shares import initialize as set_up

ACCEPT, RELEASE, REJECT = 1, 2, 3
LOCK_MS, PRUNE_MS = 30_000, 300_000
NAMES = ["a", "b", "c"]
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}


class NodeMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name), SETTINGS)
        self.world.create("t")
        set_up(self.world)
        self.written = 0
        self.members: dict[str, Member] = {}
        self.holders: dict[int, str] = {}
        self.settled: set[int] = set()
        self.given_up: set[int] = set()

    def member(self, name: str) -> Member:
        if name not in self.members:
            self.members[name] = Member(self.world, name)
            self.take(name, self.members[name].fetch([0], max_records=0))
        return self.members[name]

    def take(self, name: str, response: object) -> None:
        for first, last, count in acquired(response):
            for offset in range(first, last + 1):
                assert offset not in self.holders, "two members hold one record"
                assert offset not in self.settled, "a settled record is delivered again"
                self.holders[offset] = name
                if count == 5:
                    self.given_up.add(offset)

    @rule(count=st.integers(1, 8))
    def write(self, count: int) -> None:
        produce(self.world, *[b"x"] * count)
        self.written += count

    @rule(name=st.sampled_from(NAMES), records=st.integers(1, 20), strictly=st.booleans())
    def fetch(self, name: str, records: int, strictly: bool) -> None:
        mode = {"max_records": records, "share_acquire_mode": int(strictly)}
        self.take(name, self.member(name).fetch(**mode))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), kind=st.sampled_from([ACCEPT, RELEASE, REJECT]))
    def settle(self, data: st.DataObject, kind: int) -> None:
        first = data.draw(st.sampled_from(sorted(self.holders)))
        name = self.holders[first]
        last = first
        while self.holders.get(last + 1) == name and last < first + 4:
            last += 1
        assert self.members[name].settle((first, last, [kind])) == Error.NONE
        for offset in range(first, last + 1):
            del self.holders[offset]
            if kind != RELEASE:
                self.settled.add(offset)

    @rule(name=st.sampled_from(NAMES))
    def vanish(self, name: str) -> None:
        if name in self.members:
            self.world.node.disconnect(self.members.pop(name).client.connection)
            self.let_go(name)

    def let_go(self, name: str) -> None:
        self.holders = {offset: holder for offset, holder in self.holders.items() if holder != name}

    @rule(ms=st.sampled_from([LOCK_MS // 2, LOCK_MS, PRUNE_MS]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)
        held = {
            offset
            for shared in self.world.node.share_partitions.known.values()
            for run in shared.machine.runs
            if run.owner
            for offset in range(run.first, run.last + 1)
        }
        self.holders = {offset: holder for offset, holder in self.holders.items() if offset in held}

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.world.restart(clean)
        self.members, self.holders = {}, {}

    def teardown(self) -> None:
        """Whatever happened, the next member gets all that is open."""
        if not hasattr(self, "world"):
            return
        self.world.advance(LOCK_MS)
        self.holders = {}
        last = Member(self.world, "z")
        self.take("z", last.fetch([0]))
        for _ in range(500):
            said = [(offset, offset, [ACCEPT]) for offset in sorted(self.holders)]
            self.settled |= self.holders.keys()
            self.holders = {}
            if not said:
                break
            self.take("z", last.fetch(said={0: said}))
        lost = set(range(self.written)) - self.settled - self.given_up
        self.world.node.stop()
        self.folder.cleanup()
        assert not lost


NodeMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestNode = NodeMachine.TestCase

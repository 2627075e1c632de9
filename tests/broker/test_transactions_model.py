"""Random producers, zombies, time-outs, restarts and crashes of a whole node; then everything is read.

What machines/test_transactions_model.py does with the machine alone, here the log, its transaction index and its
recovery, the checks of Produce and the offsets of groups take part in.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from moldau.wire.errors import Error
from tests.broker.conftest import World
from tests.broker.transactional import Transactional, committed_offset, fetch, read

NAMES, PARTITIONS = ["x", "y"], 2
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.segment.bytes": "1048576",
}
OVER = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_ID_MAPPING, Error.INVALID_TXN_STATE)


class Producer(Transactional):
    """With the number of its open transaction, and the partitions that were added to it."""

    serial: int
    transaction: int | None = None
    added: frozenset[int] = frozenset()


class NodeMachine(RuleBasedStateMachine):
    producers = Bundle("producers")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name), SETTINGS).coordinate()
        self.world.create("t", PARTITIONS, segment_bytes="1048576")
        self.number = 0
        self.owner: dict[str, int] = {}
        self.written: dict[int, list[int]] = {}
        self.told: dict[int, bool] = {}
        self.offsets: list[int] = []

    @rule(target=producers, name=st.sampled_from(NAMES), version=st.sampled_from([1, 2]))
    def new_producer(self, name: str, version: int) -> Producer:
        made = Producer(self.world, name, version)
        made.begin(timeout_ms=30_000)
        self.number += 1
        made.serial = self.owner[name] = self.number
        return made

    @rule(producer=producers, index=st.integers(0, PARTITIONS - 1), size=st.sampled_from([1, 1, 100_000]))
    def write(self, producer: Producer, index: int, size: int) -> None:
        error = Error.NONE
        if producer.version == 1 and index not in producer.added:
            error = producer.add("t", index)
            producer.added |= {index} if error is Error.NONE else set()
        if producer.transaction is None:
            self.number += 1
            producer.transaction = self.number
        if error is Error.NONE:
            error = producer.send("t", b"%d:" % producer.transaction + b"x" * size, index=index)
        if error is Error.NONE:
            assert self.owner[producer.name] == producer.serial, "a fenced producer has written"
            self.written.setdefault(producer.transaction, []).append(index)

    @rule(producer=producers)
    def commit_offset(self, producer: Producer) -> None:
        """The group's offset is the number of the transaction."""
        if producer.transaction is not None and producer.transaction in self.written:
            if producer.version == 1 and producer.add_group("g"):
                return
            if producer.commit_offset("g", "t", producer.transaction) is Error.NONE:
                self.offsets.append(producer.transaction)

    @rule(producer=producers, commit=st.booleans())
    def end(self, producer: Producer, commit: bool) -> None:
        if producer.transaction is None:
            return
        error = producer.end(commit)
        if error is Error.NONE:
            assert self.owner[producer.name] == producer.serial, "a fenced producer has ended a transaction"
            self.told[producer.transaction] = commit
        if error is Error.NONE or error in OVER:
            self.told.setdefault(producer.transaction, False)
            producer.transaction, producer.added = None, frozenset()

    @rule(producer=consumes(producers))
    def producer_dies(self, producer: Producer) -> None:
        """Its transaction stays open until its time is up or its id is taken over."""

    @rule(ms=st.sampled_from([10, 40_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.world.restart(clean)

    @invariant()
    def only_committed_records_are_read(self) -> None:
        if hasattr(self, "world"):
            for index in range(PARTITIONS):
                for value in read(self.world, "t", index):
                    assert self.told.get(int(value.partition(b":")[0])), "a record is read that nobody committed"

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.advance(60_000)
        self.world.advance(2_000)
        seen: list[tuple[int, int]] = []
        for index in range(PARTITIONS):
            row = fetch(self.world, "t", index)
            assert row.last_stable_offset == row.high_watermark, "a transaction is left open"
            seen += [(int(value.partition(b":")[0]), index) for value in read(self.world, "t", index)]
        for transaction, partitions in self.written.items():
            found = [index for number, index in seen if number == transaction]
            expected = sorted(partitions) if self.told.get(transaction) else []
            assert found == expected, f"transaction {transaction} is half committed"
        counted = [transaction for transaction in self.offsets if self.told.get(transaction)]
        error, offset = committed_offset(self.world, "g", "t")
        assert error is Error.NONE and (offset in counted or (not counted and offset == -1))
        self.world.node.stop()
        self.folder.cleanup()


TestNode = NodeMachine.TestCase
TestNode.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)

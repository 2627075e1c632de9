"""Transactional ids: who owns them, what they may do, and that nothing is ever half done.

The state machine at the end runs producers, zombies, retries, time-outs and crashes against one machine and against
partitions that know no more than the log does (log/producers.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from moldau.broker import coordinators
from moldau.log.answers import Origin
from moldau.log.producers import Marker, Producers
from moldau.machines.effects import Effects, Promise
from moldau.machines.transactions import (
    LAST_EPOCH,
    PREPARED,
    Identity,
    Limits,
    Outcome,
    State,
    Transaction,
    Transactions,
)
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

TOPIC = "__transaction_state"
T0, T1 = ("t", 0), ("t", 1)
MINUTE = 60_000
DEFAULTS = Limits()


@dataclass
class Bench:
    """A machine, the records it has committed, and a clock."""

    version: int = 2
    limits: Limits = DEFAULTS
    now_ms: int = 1_700_000_000_000
    ids: Any = field(default_factory=lambda: count(100))
    log: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = self.load()

    def load(self) -> Transactions:
        """A machine as a restart makes it."""
        machine = Transactions(self.limits, lambda: next(self.ids), lambda: self.version)
        for record in self.log:
            key, value = coordinators.decode(TOPIC, record)
            machine.replay(key, value, -1)
        machine.loaded(self.now_ms)
        return machine

    def run(self, effects: Effects) -> Any:
        """As the runtime does: commit, replay, answer."""
        for change in effects.changes:
            self.log.append(coordinators.encode(change, self.now_ms))
        for change in effects.changes:
            self.machine.replay(change.key, change.value, -1)
        return effects.answers[0][1] if effects.answers else None

    def init(self, name: str = "x", expected: Identity | None = None, timeout_ms: int = MINUTE) -> Outcome:
        return self.run(self.machine.init_producer_id(Promise(Outcome), name, timeout_ms, expected, self.now_ms))

    def add(self, producer: Identity, *partitions: tuple[str, int], name: str = "x", client: int = 2) -> Error:
        return self.run(self.machine.add_partitions(Promise(Outcome), name, producer, partitions, client, self.now_ms))

    def end(self, producer: Identity, commit: bool = True, name: str = "x", client: int = 2) -> Outcome:
        return self.run(self.machine.end(Promise(Outcome), name, producer, commit, client, self.now_ms))

    def settle(self) -> None:
        """All markers are written."""
        self.run(self.machine.marked(list(self.machine.unmarked), self.now_ms))

    def tick(self, ms: int) -> None:
        self.now_ms += ms
        self.run(self.machine.tick(self.now_ms))

    def state(self, name: str = "x") -> State:
        return self.machine.by_id[name].state


def set_epoch(bench: Bench, epoch: int) -> Identity:
    """As if the producer had lived through that many epochs."""
    bench.machine.by_id["x"] = replace(bench.machine.by_id["x"], epoch=epoch)
    return Identity(bench.machine.by_id["x"].producer_id, epoch)


def test_a_new_id_begins_with_epoch_0_and_each_new_producer_raises_it():
    bench = Bench()
    assert bench.init() == (Error.NONE, (100, 0))
    assert bench.init() == (Error.NONE, (100, 1))
    assert bench.init("y") == (Error.NONE, (101, 0))
    assert bench.state() is State.EMPTY


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_limits_is_refused(timeout_ms):
    assert Bench().init(timeout_ms=timeout_ms).error is Error.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_id_is_refused_everywhere():
    bench = Bench()
    assert bench.init("").error is Error.INVALID_REQUEST
    assert bench.add(Identity(1, 0), T0, name="") is Error.INVALID_REQUEST
    assert bench.end(Identity(1, 0), name="").error is Error.INVALID_REQUEST
    assert bench.machine.verify("", Identity(1, 0), [T0]) == {T0: Error.INVALID_REQUEST}


def test_a_transaction_of_version_2_raises_the_epoch_when_it_ends():
    bench = Bench()
    first = bench.init().identity
    assert bench.add(first, T0, T1) is Error.NONE
    assert bench.end(first) == (Error.NONE, (100, 1))
    assert bench.state() is State.PREPARE_COMMIT and bench.machine.unmarked == {"x": {T0, T1}}
    bench.settle()
    assert bench.state() is State.COMPLETE_COMMIT and not bench.machine.unmarked
    assert bench.add(first, T0) is Error.PRODUCER_FENCED
    assert bench.add(Identity(100, 1), T0) is Error.NONE


def test_a_transaction_of_version_1_keeps_its_epoch():
    bench = Bench()
    first = bench.init().identity
    bench.add(first, T0, client=0)
    assert bench.end(first, client=0) == (Error.NONE, (-1, -1))
    bench.settle()
    assert bench.end(first, client=0).error is Error.NONE
    assert bench.end(first, commit=False, client=0).error is Error.INVALID_TXN_STATE
    assert bench.add(first, T0, client=0) is Error.NONE
    assert bench.machine.by_id["x"].epoch == 0


# Kafka's table for an end that finds no open transaction, by state, by whether it is a retry, and by what is wanted.
AFTER_END = [
    ("empty", False, "abort", Error.NONE, 1),
    ("empty", False, "commit", Error.INVALID_TXN_STATE, None),
    ("aborted", True, "abort", Error.NONE, 0),
    ("aborted", False, "abort", Error.NONE, 1),
    ("aborted", True, "commit", Error.INVALID_TXN_STATE, None),
    ("aborted", False, "commit", Error.INVALID_TXN_STATE, None),
    ("committed", True, "abort", Error.INVALID_TXN_STATE, None),
    ("committed", False, "abort", Error.NONE, 1),
    ("committed", True, "commit", Error.NONE, 0),
    ("committed", False, "commit", Error.INVALID_TXN_STATE, None),
]


@pytest.mark.parametrize(("before", "retry", "wanted", "error", "bump"), AFTER_END)
def test_an_end_without_an_open_transaction(before, retry, wanted, error, bump):
    bench = Bench()
    producer = bench.init().identity
    if before != "empty":
        bench.add(producer, T0)
        bench.end(producer, commit=before == "committed")
        bench.settle()
    now = bench.machine.by_id["x"].epoch
    outcome = bench.end(Identity(100, now - retry), commit=wanted == "commit")
    assert outcome.error is error
    assert outcome.identity == ((-1, -1) if bump is None else (100, now + bump))


def test_while_markers_are_missing_everybody_waits():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0)
    after = bench.end(producer).identity
    assert bench.init().error is Error.CONCURRENT_TRANSACTIONS
    assert bench.add(after, T0) is Error.CONCURRENT_TRANSACTIONS
    assert bench.machine.verify("x", after, [T0]) == {T0: Error.CONCURRENT_TRANSACTIONS}
    assert bench.end(producer).error is Error.CONCURRENT_TRANSACTIONS
    assert bench.end(producer, commit=False).error is Error.INVALID_TXN_STATE
    assert bench.end(after).error is Error.PRODUCER_FENCED


def test_a_new_producer_aborts_the_open_transaction_first():
    bench = Bench()
    old = bench.init().identity
    bench.add(old, T0)
    assert bench.init().error is Error.CONCURRENT_TRANSACTIONS
    assert bench.state() is State.PREPARE_ABORT
    bench.settle()
    new = bench.init()
    assert new == (Error.NONE, (100, 2))
    assert bench.end(old).error is Error.PRODUCER_FENCED
    assert bench.add(old, T0) is Error.PRODUCER_FENCED
    assert bench.init(expected=old).error is Error.PRODUCER_FENCED


def test_with_transactions_version_1_a_new_producer_gets_the_epoch_after_the_fence():
    bench = Bench(version=1)
    old = bench.init().identity
    bench.add(old, T0, client=0)
    bench.init()
    bench.settle()
    assert bench.init() == (Error.NONE, (100, 2))
    assert bench.end(old, client=0).error is Error.PRODUCER_FENCED


def test_a_producer_that_says_who_it_is_goes_on_and_may_ask_twice():
    bench = Bench()
    bench.init()
    assert bench.init(expected=Identity(100, 0)) == (Error.NONE, (100, 1))
    assert bench.init(expected=Identity(100, 0)) == (Error.NONE, (100, 1))
    assert bench.init(expected=Identity(100, 1)) == (Error.NONE, (100, 2))
    assert bench.init(expected=Identity(100, 0)).error is Error.PRODUCER_FENCED
    assert bench.init(expected=Identity(99, 2)).error is Error.PRODUCER_FENCED


def test_after_a_new_producer_the_old_one_cannot_go_on():
    bench = Bench()
    bench.init()
    bench.init()
    assert bench.init(expected=Identity(100, 0)).error is Error.PRODUCER_FENCED


def test_a_forgotten_id_accepts_whoever_says_it_had_it():
    assert Bench().init(expected=Identity(7, 3)) == (Error.NONE, (100, 0))


def test_when_epochs_run_out_there_is_a_new_producer_id():
    bench = Bench()
    bench.init()
    old = set_epoch(bench, LAST_EPOCH - 1)
    assert bench.init(expected=old) == (Error.NONE, (101, 0))
    assert bench.init(expected=old) == (Error.NONE, (101, 0)), "the answer may have been lost"
    assert bench.machine.by_id["x"].previous_producer_id == 101


def test_an_end_in_the_last_epoch_gives_a_new_producer_id():
    bench = Bench()
    bench.init()
    last = set_epoch(bench, LAST_EPOCH - 1)
    bench.add(last, T0)
    assert bench.end(last) == (Error.NONE, (101, 0))
    prepared = bench.machine.by_id["x"]
    assert (prepared.producer_id, prepared.epoch, prepared.next_producer_id) == (100, LAST_EPOCH, 101)
    bench.settle()
    assert bench.end(last) == (Error.NONE, (101, 0)), "a retry is recognised by the producer id before"
    assert bench.add(Identity(101, 0), T0) is Error.NONE


def test_only_partitions_of_the_transaction_are_verified():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0, client=0)
    assert bench.machine.verify("x", producer, [T0, T1]) == {T0: Error.NONE, T1: Error.TRANSACTION_ABORTABLE}
    assert bench.machine.verify("x", Identity(100, 1), [T0]) == {T0: Error.PRODUCER_FENCED}
    assert bench.machine.verify("y", producer, [T0]) == {T0: Error.INVALID_PRODUCER_ID_MAPPING}


def test_to_add_what_is_there_writes_nothing():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0)
    written = len(bench.log)
    assert bench.add(producer, T0) is Error.NONE
    assert len(bench.log) == written


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(version):
    bench = Bench(version=version)
    producer = bench.init(timeout_ms=30_000).identity
    client = 2 if version == 2 else 0
    bench.add(producer, T0, client=client)
    bench.tick(20_000)
    assert bench.state() is State.ONGOING
    bench.tick(20_000)
    assert bench.state() is State.PREPARE_ABORT
    bench.settle()
    assert bench.add(producer, T0, client=client) is Error.PRODUCER_FENCED
    assert bench.end(producer, client=client).error in (Error.PRODUCER_FENCED, Error.INVALID_TXN_STATE)
    if version == 2:
        assert bench.init(expected=producer) == (Error.NONE, (100, 1)), "it may go on after an abort (KIP-890)"


def test_many_late_transactions_are_aborted_in_turns():
    bench = Bench()
    for n in range(250):
        bench.add(bench.init(f"x{n}", timeout_ms=1000).identity, T0, name=f"x{n}")
    left = []
    for _ in range(3):
        bench.tick(15_000 if not left else 0)
        left.append(sum(one.state is State.ONGOING for one in bench.machine.by_id.values()))
    assert left == [150, 50, 0]
    assert bench.machine.abort_due_ms > bench.now_ms


def test_an_id_that_nobody_uses_is_forgotten_but_not_while_it_is_in_use():
    bench = Bench(limits=Limits(expiration_ms=1000, expiration_interval_ms=100, abort_interval_ms=10**9))
    bench.init("idle")
    bench.add(bench.init("busy").identity, T0, name="busy")
    bench.tick(1500)
    assert set(bench.machine.by_id) == {"busy"}
    assert set(bench.load().by_id) == {"busy"}
    assert bench.init("idle") == (Error.NONE, (102, 0))


def test_records_before_version_1_of_the_feature_have_no_tagged_fields():
    bench = Bench(version=0)
    bench.add(bench.init().identity, T0, client=0)
    assert [record.value[:2] for record in bench.log] == [b"\0\0", b"\0\0"]
    assert bench.load().by_id["x"].partitions == {T0}


def test_a_loaded_machine_goes_on_with_what_was_decided():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0, T1)
    bench.end(producer)
    bench.machine = bench.load()
    assert bench.machine.unmarked == {"x": {T0, T1}}
    assert bench.machine.next_deadline_ms() <= bench.now_ms
    bench.settle()
    assert bench.state() is State.COMPLETE_COMMIT


# What Apache Kafka 4.3.1 wrote to `__transaction_state` when it was asked the same: the time, the command, the value.
OFFSETS = "__consumer_offsets"
KAFKA_WROTE = [
    (
        1794723679410,
        lambda bench, producer: bench.init(),
        "0001 0000000000000004 0000 0000ea60 00 00 000001a1ddde0cb2 ffffffffffffffff 01 00080000000000000004",
    ),
    (
        1794723679428,
        lambda bench, producer: bench.add(producer, client=0),
        "0001 0000000000000004 0000 0000ea60 01 01 000001a1ddde0cc4 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679436,
        lambda bench, producer: bench.end(producer, client=0),
        "0001 0000000000000004 0000 0000ea60 02 01 000001a1ddde0ccc 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679437,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0000 0000ea60 04 01 000001a1ddde0ccd 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679641,
        lambda bench, producer: bench.end(producer, commit=False),
        "0001 0000000000000004 0001 0000ea60 03 01 000001a1ddde0d99 000001a1ddde0d99 02 00080000000000000004 02020002",
    ),
    (
        1794723679642,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0001 0000ea60 05 01 000001a1ddde0d9a 000001a1ddde0d99 02 00080000000000000004 02020002",
    ),
    (
        1794723679854,
        lambda bench, producer: bench.add(producer, (OFFSETS, 0), client=0),
        "0001 0000000000000004 0001 0000ea60 01 02 135f5f636f6e73756d65725f6f666673657473 02 00000000 00"
        "000001a1ddde0e6e 000001a1ddde0e6e 01 00080000000000000004",
    ),
    (
        1794723679857,
        lambda bench, producer: bench.add(producer, (OFFSETS, 3), client=0),
        "0001 0000000000000004 0001 0000ea60 01 02 135f5f636f6e73756d65725f6f666673657473 03 00000000 00000003 00"
        "000001a1ddde0e71 000001a1ddde0e6e 01 00080000000000000004",
    ),
    (
        1794723748337,
        lambda bench, producer: bench.tick(0),
        "0001 0000000000000004 0002 0000ea60 03 02 135f5f636f6e73756d65725f6f666673657473 03 00000000 00000003 00"
        "000001a1dddf19f1 000001a1ddde0e6e 02 00080000000000000004 02020002",
    ),
    (
        1794723748337,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0002 0000ea60 05 01 000001a1dddf19f1 000001a1ddde0e6e 02 00080000000000000004 02020002",
    ),
]


def test_records_are_those_of_kafka():
    bench = Bench(now_ms=KAFKA_WROTE[0][0], ids=count(4))
    for now_ms, command, value in KAFKA_WROTE:
        known = bench.machine.by_id.get("x")
        bench.now_ms = now_ms
        command(bench, known and Identity(known.producer_id, known.epoch))
        assert bench.log[-1].key == b"\0\0" + b"\0\1x"
        assert bench.log[-1].value.hex() == value.replace(" ", "")
    assert len(bench.log) == len(KAFKA_WROTE)


# Producers, zombies, time-outs and crashes, all at once.

NAMES = ["x", "y"]
PARTITIONS = [T0, T1, ("u", 0)]


@dataclass
class Place:
    """A partition: what the log knows of producers, and the entries that readers see."""

    producers: Producers = field(default_factory=lambda: Producers(None, ""))  # type: ignore[arg-type]
    entries: list[tuple[str, int, Any]] = field(default_factory=list)

    def write(self, producer: Identity, sequence: int, transaction: int) -> None:
        self.producers.check(*producer, sequence, sequence, True, Origin.CLIENT)
        offset = len(self.entries)
        self.producers.apply(*producer, sequence, offset, offset, 0, True)
        self.entries.append(("data", producer.producer_id, transaction))

    def mark(self, one: Transaction) -> None:
        marker = Marker(one.commits, 0, 0)
        self.producers.check_marker(one.producer_id, one.epoch, marker, one.client_version)
        self.producers.apply_marker(one.producer_id, one.epoch, len(self.entries), marker)
        self.entries.append(("marker", one.producer_id, one.commits))

    def is_open(self, producer: Identity) -> bool:
        known = self.producers.by_id.get(producer.producer_id)
        if known and producer.epoch < known.epoch:
            raise Refused(Error.INVALID_PRODUCER_EPOCH, "")
        return known is not None and known.txn_first_offset >= 0 and known.epoch == producer.epoch

    def committed(self) -> list[int]:
        """What a reader of committed records sees, up to the first one that is not decided."""
        seen: list[int] = []
        waiting: dict[int, list[int]] = {}
        for kind, producer_id, what in self.entries:
            if kind == "data":
                waiting.setdefault(producer_id, []).append(what)
            elif transactions := waiting.pop(producer_id, []):
                seen += transactions if what else []
        return seen


@dataclass
class Client:
    """A producer with its own idea of who it is."""

    name: str
    version: int
    identity: Identity
    serial: int
    transaction: int | None = None
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    added: set[tuple[str, int]] = field(default_factory=set)

    def begin(self, transaction: int) -> int:
        if self.transaction is None:
            self.transaction = transaction
        return self.transaction

    def is_over(self) -> None:
        self.transaction = None
        self.added.clear()

    def reborn(self, identity: Identity) -> None:
        if identity != self.identity:
            self.identity, self.sequences = identity, {}


class TransactionMachine(RuleBasedStateMachine):
    """Of every transaction either all records are read or none, whatever happens in between."""

    clients = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(limits=Limits(abort_interval_ms=1000))
        self.places = {name: Place() for name in PARTITIONS}
        self.transactions = count()
        self.owners: dict[str, int] = {}  # the client that was last given the id
        self.serials = count()
        self.written: dict[int, list[tuple[str, int]]] = {}
        self.decided: dict[int, bool] = {}  # transaction -> whether a client was told that it is committed
        self.asked: set[int] = set()  # a commit was asked for, and the answer may be unknown

    def settle(self, markers: int | None = None) -> None:
        """Write markers, all or the first few, and complete what has all of them."""
        done = []
        for name, missing in list(self.bench.machine.unmarked.items()):
            for partition in sorted(missing)[:markers]:
                self.places[partition].mark(self.bench.machine.by_id[name])
                missing.discard(partition)
            if not missing:
                done.append(name)
        self.bench.run(self.bench.machine.marked(done, self.bench.now_ms))

    @initialize(version=st.sampled_from([0, 1, 2, 2]))
    def choose_version(self, version: int) -> None:
        """The level of transaction.version in the cluster."""
        self.bench.version = version

    @rule(target=clients, name=st.sampled_from(NAMES), version=st.sampled_from([0, 2]))
    def new_producer(self, name: str, version: int) -> Client:
        while (outcome := self.bench.init(name)).error is Error.CONCURRENT_TRANSACTIONS:
            self.settle()
        assert outcome.error is Error.NONE
        client = Client(name, min(version, self.bench.version & 2), outcome.identity, next(self.serials))
        self.owners[name] = client.serial
        return client

    def owns(self, client: Client) -> bool:
        return self.owners[client.name] == client.serial

    def admitted(self, client: Client, partition: tuple[str, int]) -> Error:
        """The client of version 1 adds a partition first; that of version 2 leaves it to its first write."""
        if client.version < 2 and partition not in client.added:
            error = self.bench.add(client.identity, partition, name=client.name, client=0)
            if error:
                return error
            client.added.add(partition)
        if self.places[partition].is_open(client.identity):
            return Error.NONE
        if client.version < 2:
            return self.bench.machine.verify(client.name, client.identity, [partition])[partition]
        return self.bench.add(client.identity, partition, name=client.name)

    @rule(client=clients, partition=st.sampled_from(PARTITIONS))
    def write(self, client: Client, partition: tuple[str, int]) -> None:
        try:
            error = self.admitted(client, partition)
            if error is Error.NONE:
                sequence = client.sequences.get(partition, 0)
                transaction = client.begin(next(self.transactions))
                self.places[partition].write(client.identity, sequence, transaction)
                client.sequences[partition] = sequence + 1
                self.written.setdefault(transaction, []).append(partition)
        except Refused as refused:
            error = refused.error
        assert error is not Error.NONE or self.owns(client), "a fenced producer has written"

    @rule(client=clients, commit=st.booleans(), lost=st.booleans())
    def end(self, client: Client, commit: bool, lost: bool) -> None:
        """End the transaction; the answer may be lost, and then the client asks again."""
        if client.transaction is None:
            return
        if commit:
            self.asked.add(client.transaction)
        outcome = self.bench.end(client.identity, commit, client.name, client.version)
        if lost:
            outcome = self.bench.end(client.identity, commit, client.name, client.version)
            while outcome.error is Error.CONCURRENT_TRANSACTIONS:
                self.settle()
                outcome = self.bench.end(client.identity, commit, client.name, client.version)
        if outcome.error is Error.NONE:
            assert self.owns(client), "a fenced producer has ended a transaction"
            self.decided[client.transaction] = commit
            client.is_over()
            if outcome.identity.producer_id >= 0:
                client.reborn(outcome.identity)
        elif outcome.error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_ID_MAPPING, Error.INVALID_TXN_STATE):
            self.decided.setdefault(client.transaction, False)
            client.is_over()

    @rule(client=clients)
    def go_on_after_an_error(self, client: Client) -> None:
        """KIP-360: the producer says who it was."""
        outcome = self.bench.init(client.name, client.identity)
        while outcome.error is Error.CONCURRENT_TRANSACTIONS:
            self.settle()
            outcome = self.bench.init(client.name, client.identity)
        if outcome.error is Error.NONE:
            assert self.owns(client), "a fenced producer was taken back"
            if client.transaction is not None:
                self.decided.setdefault(client.transaction, False)
            client.is_over()
            client.reborn(outcome.identity)

    @rule(client=consumes(clients))
    def client_dies(self, client: Client) -> None:
        """Its transaction stays open until somebody takes over its id, or time is up."""

    @rule(ms=st.sampled_from([10, 5_000, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.bench.tick(ms)

    @rule()
    def markers_are_written(self) -> None:
        self.settle()

    @rule(markers=st.integers(0, 2))
    def crash(self, markers: int) -> None:
        """The coordinator dies with some of its markers written, and is loaded again."""
        for name, missing in list(self.bench.machine.unmarked.items()):
            for partition in sorted(missing)[:markers]:
                self.places[partition].mark(self.bench.machine.by_id[name])
        unwritten = {"last_epoch": -1} | ({} if self.bench.version else {"previous_producer_id": -1})
        before = {name: replace(one, **unwritten) for name, one in self.bench.machine.by_id.items()}
        self.bench.machine = self.bench.load()
        assert self.bench.machine.by_id == before, "the records say something else than what was lived through"
        prepared = {name for name, one in before.items() if one.state in PREPARED}
        assert self.bench.machine.unmarked.keys() == prepared

    @invariant()
    def nothing_is_read_that_was_not_committed(self) -> None:
        for place in self.places.values():
            for transaction in place.committed():
                assert transaction in self.asked, "a record is visible whose commit nobody asked for"
                assert self.decided.get(transaction, True), "an aborted record is visible"

    def teardown(self) -> None:
        """In the end every transaction is decided, and all its partitions agree."""
        self.bench.tick(10**7)
        self.settle()
        assert not self.bench.machine.unmarked
        seen = [(transaction, name) for name, place in self.places.items() for transaction in place.committed()]
        for transaction, partitions in self.written.items():
            visible = [name for number, name in seen if number == transaction]
            assert visible == [] or sorted(visible) == sorted(partitions), f"{transaction} is half committed"
            if transaction in self.decided:
                assert bool(visible) == self.decided[transaction], f"{transaction} is not what its producer was told"
        for name, place in self.places.items():
            assert place.producers.first_unstable is None or not place.producers.ongoing, f"{name} has an open end"


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)

"""Producers, zombies, retries, time-outs and crashes: no transaction is ever half done.

The machine runs against partitions that know no more than the log does (log/producers.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from moldau.log.answers import Origin
from moldau.log.producers import Marker, Producers
from moldau.machines.transactions import PREPARED, Identity, Limits, Transaction
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.transaction_bench import T0, T1, Bench

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
        for name, missing in list(self.bench.machine.unmarked.items()):
            for partition in sorted(missing)[:markers]:
                self.places[partition].mark(self.bench.machine.by_id[name])
                missing.discard(partition)
            if not missing:
                self.bench.run(self.bench.machine.marked(name, self.bench.now_ms))

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

"""Transactions: the machine of one partition of `__transaction_state`.

A transactional id owns a producer id with an epoch, and at most one transaction. Its life is a row of records:

```
Empty ──▶ Ongoing ──▶ PrepareCommit ──▶ CompleteCommit ──▶ Ongoing ...
             └──────▶ PrepareAbort  ──▶ CompleteAbort  ──▶ Ongoing ...
```
A prepared transaction is decided: whatever happens, its markers are written to each of its partitions and then it is
complete. The machine lists it in `unmarked` until `marked` says that the markers are there; a machine that is loaded
again lists every prepared transaction anew, since to repeat a marker does no harm.

A new InitProducerId fences whoever used the id before: it raises the epoch. With transactions version 2 (KIP-890) each
end of a transaction raises it too, so that nothing late can slip into the next transaction. When epochs run out, the
id gets a new producer id.

`Transaction.last_epoch` is not in the records, as in Kafka: a repeated InitProducerId is recognised only by the
coordinator that answered the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf
from typing import Any, NamedTuple

from moldau.machines.effects import Change, Effects, Promise
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

LAST_EPOCH = 2**15 - 1
BATCH_BYTES = 250_000  # about how much the records of one tick may come to
PARTITION_BYTES = 260  # of a partition in a record: a name of the longest, and the rest
RECORD_BYTES = 100  # of a record beside its id and its partitions
RETRY_MS = 1000  # between two attempts to write markers that could not be written
EPOCH_BUMPS = 2  # the transactions version in which each end raises the epoch
TAGGED_FIELDS = 1  # the version from which records hold them

Partition = tuple[str, int]


class State(IntEnum):
    """Numbers as in the records; the last two are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As Kafka's tools show it: `PrepareCommit`."""
        return self.name.title().replace("_", "")


IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
STATES = {state.title: state for state in State}


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is known of a transactional id."""

    id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[Partition] = frozenset()
    start_ms: int = -1
    updated_ms: int = -1
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_version: int = 0
    last_epoch: int = -1

    @property
    def exhausted(self) -> bool:
        """The last epoch is kept for fencing, and never given to a producer."""
        return self.epoch >= LAST_EPOCH - 1

    @property
    def commits(self) -> bool:
        return self.state is State.PREPARE_COMMIT


class Limits(NamedTuple):
    """Settings of the broker."""

    abort_interval_ms: int = 10_000
    expiration_ms: int = 604_800_000
    expiration_interval_ms: int = 3_600_000


class Identity(NamedTuple):
    """A producer id and its epoch; an answer of InitProducerId and EndTxn."""

    producer_id: int = -1
    epoch: int = -1


class Outcome(NamedTuple):
    error: Error
    identity: Identity = Identity()


class Transactions:
    """The transactional ids of one partition.

    `next_producer_id` gives an id that nobody has, or raises Refused, as commands then do; `version` is the level of
    the feature transaction.version.
    """

    def __init__(self, limits: Limits, next_producer_id: Callable[[], int], version: Callable[[], int]) -> None:
        self.limits = limits
        self.next_producer_id = next_producer_id
        self.version = version
        self.by_id: dict[str, Transaction] = {}
        self.ongoing: dict[str, None] = {}
        self.unmarked: dict[str, set[Partition]] = {}
        self.decided: dict[str, tuple[Any, Transaction]] = {}  # what a change that is being committed will make true
        self.abort_due_ms = self.expiry_due_ms = self.retry_due_ms = inf
        self.marking: set[str] = set()  # whose markers are being written
        self.delayed: set[str] = set()  # whose markers could not be written at the first try
        self.starts_marking = False

    # What the runtime asks for.

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        """Apply a committed change. One of our own is known already, with the last epoch that no record holds."""
        name = key.transactional_id
        ours, becomes = self.decided.pop(name, (None, None))
        for table in (self.by_id, self.ongoing, self.unmarked):
            table.pop(name, None)
        if value is None:
            return
        now = becomes if becomes is not None and ours is value else from_value(name, value)
        self.by_id[name] = now
        if now.state is State.ONGOING:
            self.ongoing[name] = None
        elif now.state in PREPARED:
            self.unmarked[name] = set(now.partitions)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Nobody writes to this topic in a transaction."""

    def loaded(self, now_ms: int) -> Effects:
        """Prepared transactions go on at once; those that are open may still be ended by their producers."""
        self.abort_due_ms = now_ms + self.limits.abort_interval_ms
        self.expiry_due_ms = now_ms + self.limits.expiration_interval_ms
        self.retry_due_ms = now_ms
        return Effects()

    def next_deadline_ms(self) -> float:
        retry = self.retry_due_ms if self.unmarked else inf
        return min(self.abort_due_ms, self.expiry_due_ms, retry)

    def tick(self, now_ms: int) -> Effects:
        """Abort what took too long, forget what was not used for long. Markers are tried again after any tick."""
        effects = Effects()
        self.retry_due_ms = now_ms + RETRY_MS
        if self.abort_due_ms <= now_ms:
            late = list(self._late(now_ms))
            some = portion(late)
            aborts = list(self._aborts(some, now_ms))
            some_left = len(some) < len(late) and len(aborts) == len(some)
            self.abort_due_ms = now_ms + (0 if some_left else self.limits.abort_interval_ms)
            effects.add(aborts)
        elif self.expiry_due_ms <= now_ms:
            old = list(self._unused(now_ms))
            some = portion(old)
            self.expiry_due_ms = now_ms + (0 if len(some) < len(old) else self.limits.expiration_interval_ms)
            effects.add(Change(m.TransactionLogKey(one.id), None) for one in some)
        return effects

    def _aborts(self, late: Iterable[Transaction], now_ms: int) -> Iterator[Change]:
        for one in late:
            try:
                yield self._decide(self._fenced(one, now_ms))
            except Refused:  # it needs a producer id, and there is none just now
                continue

    def _late(self, now_ms: int) -> Iterator[Transaction]:
        for name in self.ongoing:
            one = self.by_id[name]
            if one.start_ms + one.timeout_ms < now_ms:
                yield one

    def _unused(self, now_ms: int) -> Iterator[Transaction]:
        for one in self.by_id.values():
            if one.state in IDLE and one.updated_ms <= now_ms - self.limits.expiration_ms:
                yield one

    # Commands. Each answers its promise with an Outcome or an Error.

    def init_producer_id(
        self, promise: Promise, name: str, timeout_ms: int, expected: Identity | None, now_ms: int
    ) -> Effects:
        """Let a producer begin, or go on after an error if it says who it is (KIP-360)."""
        known = self.by_id.get(name) or Transaction(name, self.next_producer_id(), -1, timeout_ms)
        if expected is not None and not may_go_on(known, expected):
            return fail(promise, Error.PRODUCER_FENCED)
        if known.state in PREPARED:
            return fail(promise, Error.CONCURRENT_TRANSACTIONS)
        if known.state is State.ONGOING:
            # The producer asks again, and then gets an epoch that is higher by two.
            fenced = self._decide(self._fenced(known, now_ms))
            return fail(promise, Error.CONCURRENT_TRANSACTIONS).add([fenced])
        try:
            identity, last_epoch = self._raised(known, expected)
        except Refused as refused:
            return fail(promise, refused.error)
        began = replace(
            known,
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=State.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            updated_ms=now_ms,
        )
        return Effects([self._decide(began)], [(promise, Outcome(Error.NONE, identity))])

    def _raised(self, known: Transaction, expected: Identity | None) -> tuple[Identity, int]:
        """Return the next identity, and the epoch in which the producer may repeat its question."""
        if known.exhausted and (expected is None or expected.epoch == known.epoch):
            return Identity(self.next_producer_id(), 0), known.epoch if expected else -1
        if known.exhausted:
            raise Refused(Error.UNKNOWN_SERVER_ERROR, "There is no epoch left for this producer id.")
        higher = Identity(known.producer_id, known.epoch + 1)
        if expected is None:
            return higher, -1
        if expected.epoch == known.epoch or known.epoch == -1:
            return higher, known.epoch
        if expected.epoch == known.last_epoch:
            return Identity(known.producer_id, known.epoch), known.last_epoch
        raise Refused(Error.PRODUCER_FENCED, "Another producer has taken over this transactional id.")

    def add_partitions(
        self,
        promise: Promise,
        name: str,
        producer: Identity,
        partitions: Iterable[Partition],
        client_version: int,
        now_ms: int,
    ) -> Effects:
        """Add partitions that the producer is going to write to. The first ones open the transaction."""
        added, error = frozenset(partitions), self._refusal(name, producer)
        if error:
            return Effects(answers=[(promise, error)])
        known = self.by_id[name]
        is_open = known.state is State.ONGOING
        if is_open and added <= known.partitions:
            return Effects(answers=[(promise, Error.NONE)])
        grown = replace(
            known,
            state=State.ONGOING,
            partitions=known.partitions | added,
            start_ms=known.start_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )
        return Effects([self._decide(grown)], [(promise, Error.NONE)])

    def verify(self, name: str, producer: Identity, partitions: Iterable[Partition]) -> dict[Partition, Error]:
        """Return whether the partitions belong to the producer's open transaction (KIP-890)."""
        error = self._refusal(name, producer)
        if error:
            return dict.fromkeys(partitions, error)
        ours = self.by_id[name].partitions
        return {one: Error.NONE if one in ours else Error.TRANSACTION_ABORTABLE for one in partitions}

    def _refusal(self, name: str, producer: Identity) -> Error:
        """Why a producer may not use a transactional id as its own just now."""
        if not name:
            return Error.INVALID_REQUEST
        known = self.by_id.get(name)
        if known is None or known.producer_id != producer.producer_id:
            return Error.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != producer.epoch:
            return Error.PRODUCER_FENCED
        return Error.CONCURRENT_TRANSACTIONS if known.state in PREPARED else Error.NONE

    def end(
        self, promise: Promise, name: str, producer: Identity, commit: bool, client_version: int, now_ms: int
    ) -> Effects:
        """Decide a transaction. The answer is due as soon as the decision is committed."""
        known = self.by_id.get(name)
        if not name:
            return fail(promise, Error.INVALID_REQUEST)
        if known is None:
            return fail(promise, Error.INVALID_PRODUCER_ID_MAPPING)
        judge = judge_end_v2 if client_version >= EPOCH_BUMPS else judge_end_v1
        error = judge(known, producer, commit)
        if error is not None:
            repeated = error is Error.NONE and client_version >= EPOCH_BUMPS
            answer = Outcome(error, Identity(known.producer_id, known.epoch) if repeated else Identity())
            return Effects(answers=[(promise, answer)])
        prepared = self._prepared(known, commit, client_version, now_ms)
        answer = Outcome(Error.NONE)
        if client_version >= EPOCH_BUMPS:
            answer = Outcome(Error.NONE, next_identity(prepared))
        return Effects([self._decide(prepared)], [(promise, answer)])

    def marked(self, name: str, now_ms: int) -> Effects:
        """Complete a transaction whose markers are all written."""
        return Effects([self._decide(complete(self.by_id[name], now_ms))])

    # How a transaction changes.

    def _prepared(self, known: Transaction, commit: bool, client_version: int, now_ms: int) -> Transaction:
        bumps = client_version >= EPOCH_BUMPS
        higher = min(known.epoch + 1, LAST_EPOCH)
        return replace(
            known,
            state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            epoch=higher if bumps else known.epoch,
            last_epoch=known.epoch if bumps else known.last_epoch,
            next_producer_id=self.next_producer_id() if bumps and known.exhausted else -1,
            start_ms=known.start_ms if known.state is State.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=client_version if bumps else 0,
        )

    def _fenced(self, known: Transaction, now_ms: int) -> Transaction:
        """Abort without the producer's word; its epoch is no longer good."""
        version = self.version()
        if version < EPOCH_BUMPS:
            known = replace(known, epoch=min(known.epoch + 1, LAST_EPOCH), last_epoch=-1)
        return self._prepared(known, False, version, now_ms)

    def _decide(self, becomes: Transaction) -> Change:
        """Return the record of what a transaction becomes. Before it stands who owned the id until then."""
        known = self.by_id.get(becomes.id)
        owner = known.producer_id if known else becomes.producer_id
        becomes = replace(becomes, previous_producer_id=owner)
        version = min(self.version(), TAGGED_FIELDS)
        value = to_value(becomes, version)
        self.decided[becomes.id] = value, becomes
        return Change(m.TransactionLogKey(becomes.id), value, version)


def portion(transactions: Sequence[Transaction]) -> Sequence[Transaction]:
    """Return the first ones, at least one, whose records fit into a batch together."""
    size = 0
    for place, one in enumerate(transactions):
        size += RECORD_BYTES + len(one.id) + PARTITION_BYTES * len(one.partitions)
        if size > BATCH_BYTES and place:
            return transactions[:place]
    return transactions


def fail(promise: Promise, error: Error) -> Effects:
    return Effects(answers=[(promise, Outcome(error))])


def may_go_on(known: Transaction, expected: Identity) -> bool:
    """Return whether the producer that says who it is may still be the owner.

    With epoch -1 the id is new here. The previous producer id is good in its last epoch: the answer in which the new
    one was given may have been lost.
    """
    if known.epoch == -1 or expected.producer_id == known.producer_id:
        return True
    return expected.producer_id == known.previous_producer_id and expected.epoch >= LAST_EPOCH - 1


def judge_end_v1(known: Transaction, producer: Identity, commit: bool) -> Error | None:
    """None when the transaction must be ended, NONE when it was, else what is wrong."""
    if known.producer_id != producer.producer_id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != producer.epoch:
        return Error.PRODUCER_FENCED
    if known.state is State.ONGOING:
        return None
    return same_end(known, commit)


def same_end(known: Transaction, commit: bool) -> Error:
    """Return what to say to a producer that ends again what it has ended."""
    wanted = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if commit else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    if known.state not in wanted:
        return Error.INVALID_TXN_STATE
    return Error.CONCURRENT_TRANSACTIONS if known.state in PREPARED else Error.NONE


def judge_end_v2(known: Transaction, producer: Identity, commit: bool) -> Error | None:
    """Judge an end of transactions version 2, where one that is repeated comes in the epoch before.

    A producer may abort although nothing was opened: it cannot know whether its first write was. If the markers of its
    last transaction are not all written by then, it is told to try again.
    """
    overflown = (
        known.previous_producer_id == producer.producer_id and producer.epoch == LAST_EPOCH - 1 and known.epoch == 0
    )
    repeated = overflown or known.epoch == producer.epoch + 1
    if known.producer_id != producer.producer_id and not overflown:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if known.state in (State.ONGOING, State.EMPTY):
        in_time = producer.epoch == known.epoch
    elif known.state in PREPARED:
        if producer.epoch == known.epoch:
            return Error.CONCURRENT_TRANSACTIONS
        in_time = known.epoch == producer.epoch + 1
    else:
        in_time = repeated or producer.epoch == known.epoch
    if not in_time:
        return Error.PRODUCER_FENCED
    if known.state is State.ONGOING:
        return None
    if known.state in PREPARED or (repeated and known.state is not State.EMPTY):
        return same_end(known, commit)
    return Error.INVALID_TXN_STATE if commit else None


def next_identity(prepared: Transaction) -> Identity:
    """Return who the producer is once its transaction is complete."""
    if prepared.client_version >= EPOCH_BUMPS and prepared.next_producer_id != -1:
        return Identity(prepared.next_producer_id, 0)
    return Identity(prepared.producer_id, prepared.epoch)


def complete(prepared: Transaction, now_ms: int) -> Transaction:
    identity = next_identity(prepared)
    return replace(
        prepared,
        state=State.COMPLETE_COMMIT if prepared.commits else State.COMPLETE_ABORT,
        producer_id=identity.producer_id,
        epoch=identity.epoch,
        next_producer_id=-1,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def to_value(one: Transaction, version: int) -> Any:
    """Return the record's value; version 0 has no room for the last three fields."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(one.partitions):
        topics.setdefault(topic, []).append(index)
    rows = [m.TransactionLogValue_PartitionsSchema(topic, indexes) for topic, indexes in topics.items()]
    value = m.TransactionLogValue(
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        transaction_timeout_ms=one.timeout_ms,
        transaction_status=one.state,
        transaction_partitions=None if one.state is State.EMPTY else rows,
        transaction_last_update_timestamp_ms=one.updated_ms,
        transaction_start_timestamp_ms=one.start_ms,
    )
    if version >= TAGGED_FIELDS:
        value.previous_producer_id = one.previous_producer_id
        value.next_producer_id = one.next_producer_id
        value.client_transaction_version = one.client_version
    return value


def from_value(name: str, value: Any) -> Transaction:
    return Transaction(
        id=name,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=State(value.transaction_status),
        partitions=frozenset((row.topic, i) for row in value.transaction_partitions or () for i in row.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )

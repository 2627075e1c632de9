"""Joins of tables by a foreign key, over two internal topics.

- The left side subscribes: it sends a record with the foreign key as its key, which has the primary key and a hash of
  the left value (`Subscribe`).
- The right side keeps subscriptions (`KeepSubscription`), answers each with the value of the foreign key
  (`AnswerSubscription`), and sends each change of that value to all subscribers (`AnswerSubscribers`).
- The left side uses an answer only if it is for the current left value (`TakeAnswer`): others are out of date.

Instructions are Kafka's (`Instruction`), and so are the bytes on the topics, except for the hash function (BLAKE2),
which makes no visible difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from struct import Struct
from typing import Any

from moldau.serdes.context import Context as Place
from moldau.serdes.context import Serde, SerdeError

from .coders import Write
from .context import Context
from .record import Change, Record, Stamped

VERSION = 1
NO_HASH = 0x80
INT32 = Struct(">i")

Extractor = Callable[[Any, Any], Any]  # key, value: the foreign key
Lookup = Callable[[Any], Stamped | None]
OpenLookup = Callable[[Context], Lookup]
OpenWriter = Callable[[Context], Write]  # serdes may come from settings, which are known in a task


class Instruction(IntEnum):
    DELETE = 0
    DELETE_AND_ANSWER = 1
    ANSWER_ALWAYS = 2  # with None if the foreign key has no value
    ANSWER_IF_THERE = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    hash: bytes | None  # of the left value; None if there is none any more
    instruction: Instruction
    primary_key: Any
    partition: int


@dataclass(frozen=True, slots=True)
class Answer:
    hash: bytes | None
    value: Any
    partition: int | None = None


def digest(data: bytes | None) -> bytes | None:
    return None if data is None else blake2b(data, digest_size=16).digest()


def split_hash(data: bytes) -> tuple[bytes | None, bytes]:
    """Return the hash at the beginning, if the first byte says that there is one, and the rest."""
    return (None, data[1:]) if data[0] & NO_HASH else (data[1:17], data[17:])


@dataclass(frozen=True, slots=True)
class SubscriptionSerde:
    """The serde of subscriptions: `version, instruction, hash, primary key, partition`."""

    inner: Serde | None  # of primary keys

    def with_inner(self, inner: Serde) -> SubscriptionSerde:
        return SubscriptionSerde(inner)

    def to_bytes(self, value: Subscription | None, context: Place) -> bytes | None:
        assert self.inner is not None
        if value is None:
            return None
        head = bytes((VERSION | (NO_HASH if value.hash is None else 0), value.instruction))
        key = self.inner.to_bytes(value.primary_key, context) or b""
        return head + (value.hash or b"") + key + INT32.pack(value.partition)

    def from_bytes(self, data: bytes | None, context: Place) -> Subscription | None:
        assert self.inner is not None
        if data is None:
            return None
        if data[0] & ~NO_HASH != VERSION:
            raise SerdeError(f"a subscription of version {data[0] & ~NO_HASH} is not known")
        hashed, rest = split_hash(data[:1] + data[2:])
        key = self.inner.from_bytes(rest[:-4], context)
        return Subscription(hashed, Instruction(data[1]), key, INT32.unpack(rest[-4:])[0])


@dataclass(frozen=True, slots=True)
class AnswerSerde:
    """The serde of answers: `version, hash, value`. An empty value is read as none: Kafka's format."""

    inner: Serde | None  # of foreign values

    def with_inner(self, inner: Serde) -> AnswerSerde:
        return AnswerSerde(inner)

    def to_bytes(self, value: Answer | None, context: Place) -> bytes | None:
        assert self.inner is not None
        if value is None:
            return None
        head = bytes((NO_HASH if value.hash is None else 0,))
        return head + (value.hash or b"") + (self.inner.to_bytes(value.value, context) or b"")

    def from_bytes(self, data: bytes | None, context: Place) -> Answer | None:
        assert self.inner is not None
        if data is None:
            return None
        hashed, rest = split_hash(data)
        return Answer(hashed, self.inner.from_bytes(rest, context) if rest else None)


class Subscribe:
    """Sends subscriptions for each change of the left table. Foreign keys are compared by their bytes."""

    def __init__(
        self, extractor: Extractor, foreign: OpenWriter, value: OpenWriter, *, left: bool, versioned: bool = False
    ) -> None:
        self.extractor, self.left, self.versioned = extractor, left, versioned
        self.open_foreign, self.open_value = foreign, value

    def init(self, context: Context) -> None:
        self.context = context
        self.write_foreign, self.write_value = self.open_foreign(context), self.open_value(context)

    def process(self, record: Record) -> None:
        change = record.value
        if self.versioned and not change.latest:
            self.context.dropped("out-of-order record of a versioned table")
        elif self.left:
            self.process_left(record, change)
        else:
            self.process_inner(record, change)

    def process_left(self, record: Record, change: Change) -> None:
        if change.old is None and change.new is None:
            return
        old, new = self.extracted(record.key, change.old), self.extracted(record.key, change.new)
        if old is not None and self.differ(old, new):
            self.send(record, old, Instruction.DELETE)
        self.send(record, new, Instruction.ANSWER_ALWAYS)

    def process_inner(self, record: Record, change: Change) -> None:
        old, new = self.extracted(record.key, change.old), self.extracted(record.key, change.new)
        if new is None:
            if change.new is not None:
                self.context.dropped("null foreign key")
            if old is not None:
                self.send(record, old, Instruction.DELETE_AND_ANSWER)
        elif old is not None and self.differ(old, new):
            self.send(record, old, Instruction.DELETE)
            self.send(record, new, Instruction.ANSWER_ALWAYS)
        else:
            self.send(record, new, Instruction.ANSWER_IF_THERE)

    def extracted(self, key: Any, value: Any) -> Any:
        return None if value is None else self.extractor(key, value)

    def differ(self, one: Any, other: Any) -> bool:
        return self.write_foreign(one) != self.write_foreign(other)

    def send(self, record: Record, foreign: Any, instruction: Instruction) -> None:
        hashed = digest(self.write_value(record.value.new))
        source = self.context.source
        subscription = Subscription(hashed, instruction, record.key, 0 if source is None else source.partition)
        self.context.emit(Record(foreign, subscription, record.timestamp, record.headers))


def combined(foreign: bytes, primary: bytes) -> bytes:
    """Return the key of a subscription: those of one foreign key are together."""
    return INT32.pack(len(foreign)) + foreign + primary


class KeepSubscription:
    """Keeps or removes a subscription, and passes it on to be answered."""

    def __init__(self, store: str, foreign: OpenWriter, primary: OpenWriter) -> None:
        self.store_name, self.open_foreign, self.open_primary = store, foreign, primary

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.write_foreign, self.write_primary = self.open_foreign(context), self.open_primary(context)

    def process(self, record: Record) -> None:
        subscription: Subscription = record.value
        if record.key is not None:
            key = combined(self.write_foreign(record.key) or b"", self.write_primary(subscription.primary_key) or b"")
            if subscription.instruction in (Instruction.DELETE, Instruction.DELETE_AND_ANSWER):
                self.store.delete(key)
            else:
                self.store.put(key, subscription, record.timestamp)
        elif subscription.instruction is not Instruction.ANSWER_ALWAYS:
            self.context.dropped("null foreign key")
            return
        self.context.emit(record)


class AnswerSubscription:
    """Answers with the value of the foreign key, at the later of both times."""

    def __init__(self, table: OpenLookup) -> None:
        self.table = table

    def init(self, context: Context) -> None:
        self.context = context
        self.lookup = self.table(context)

    def process(self, record: Record) -> None:
        subscription: Subscription = record.value
        instruction = subscription.instruction
        found = None if record.key is None else self.lookup(record.key)
        if instruction is Instruction.DELETE or (instruction is Instruction.ANSWER_IF_THERE and found is None):
            return
        timestamp = record.timestamp if found is None else max(record.timestamp, found.timestamp)
        value = None if found is None or instruction is Instruction.DELETE_AND_ANSWER else found.value
        answer = Answer(subscription.hash, value, subscription.partition)
        self.context.emit(Record(subscription.primary_key, answer, timestamp, record.headers))


class AnswerSubscribers:
    """Sends a new value of the right table to all subscribers of its key, in the order of their keys' bytes."""

    def __init__(self, store: str, foreign: OpenWriter, *, versioned: bool = False) -> None:
        self.store_name, self.open_foreign, self.versioned = store, foreign, versioned

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.write_foreign = self.open_foreign(context)

    def process(self, record: Record) -> None:
        if record.key is None:
            self.context.dropped("null key")
            return
        if self.versioned and not record.value.latest:
            self.context.dropped("out-of-order record of a versioned table")
            return
        prefix = combined(self.write_foreign(record.key) or b"", b"")
        for _, found in self.store.prefix_scan(prefix):
            subscription: Subscription = found.value
            answer = Answer(subscription.hash, record.value.new, subscription.partition)
            self.context.emit(Record(subscription.primary_key, answer, record.timestamp, record.headers))


class TakeAnswer:
    """Joins, if the answer is for the current left value; None if the join has no result."""

    def __init__(
        self, table: OpenLookup, value: OpenWriter, joiner: Callable[[Any, Any, Any], Any], *, left: bool
    ) -> None:
        self.table, self.open_value, self.joiner, self.left = table, value, joiner, left

    def init(self, context: Context) -> None:
        self.context = context
        self.lookup = self.table(context)
        self.write_value = self.open_value(context)

    def process(self, record: Record) -> None:
        answer: Answer = record.value
        found = self.lookup(record.key)
        if answer.hash != (None if found is None else digest(self.write_value(found.value))):
            return
        if answer.value is None and (not self.left or found is None):
            result = None
        else:
            result = self.joiner(record.key, None if found is None else found.value, answer.value)
        self.context.emit(record.with_value(result))

"""Consumer instances of version 2: librdkafka's consumers that live from one request to the next.

An instance does one thing at a time. What was fetched beyond the size of an answer waits for the next one, and an
offset is stored for commit only when its record was given out. An instance that is left alone for
`consumer.instance.timeout.ms` is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import re2
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from moldau.http import HttpError
from moldau.rest.errors import ILLEGAL_STATE, INSTANCE_EXISTS, INSTANCE_NOT_FOUND, TOO_MANY, WRONG_CONSUMER, refusal
from moldau.rest.kafka import call_kafka, librdkafka
from moldau.settings import ServiceSettings

T = TypeVar("T")
FETCHED_AT_ONCE = 500
PATIENCE_SECONDS = 0.1  # how long a fetch waits before it looks whether the instance is to be closed
SEEK_SECONDS = 2.0
EXPIRY_SECONDS = 1.0


class Instance:
    """One consumer. Its methods block, and are called under its lock."""

    def __init__(self, consumer: Consumer, group: str, name: str, format: str, timeout_ms: int, min_bytes: int) -> None:
        self.consumer, self.group, self.name, self.format = consumer, group, name, format
        self.timeout_ms, self.min_bytes = timeout_ms, min_bytes
        self.lock = asyncio.Lock()
        self.expires = 0.0
        self.closing = threading.Event()
        self.mode: str | None = None  # topics, pattern or assignment, which exclude each other
        self.topics: list[str] = []
        self._waiting: deque[Message] = deque()
        self._given: dict[tuple[str, int], int] = {}  # the offset behind the last record that was given out

    def subscribe(self, topics: list[str] | None, pattern: str | None) -> None:
        self._enter("pattern" if topics is None else "topics")
        if topics is None:
            self.topics, names = [pattern or ""], [f"^({pattern})$"]
        else:
            self.topics = names = topics
        self.consumer.subscribe(names, on_revoke=self._revoked, on_lost=self._revoked)

    def subscription(self, known: Callable[[], list[str]]) -> list[str]:
        if self.mode != "pattern":
            return self.topics if self.mode == "topics" else []
        return [name for name in known() if re2.fullmatch(self.topics[0], name)]

    def unsubscribe(self) -> None:
        if self.mode == "assignment":
            self.consumer.unassign()
        else:
            self.consumer.unsubscribe()
        self.mode, self.topics = None, []
        self._forget(None)

    def assign(self, partitions: list[tuple[str, int]]) -> None:
        self._enter("assignment")
        self._forget(None)
        self.consumer.assign([TopicPartition(*pair) for pair in partitions])

    def _enter(self, mode: str) -> None:
        if self.mode not in (None, mode):
            raise refusal(ILLEGAL_STATE, "Subscription to topics, partitions and pattern are mutually exclusive")
        self.mode = mode

    def assignment(self) -> list[tuple[str, int]]:
        return sorted((one.topic, one.partition) for one in self.consumer.assignment())

    def seek(self, partitions: list[tuple[str, int]], offsets: list[int], timeout_s: float) -> None:
        """Move to offsets of partitions that are assigned; OFFSET_BEGINNING and OFFSET_END are looked up first."""
        own = set(self.assignment())
        for pair in partitions:
            if pair not in own:
                raise refusal(ILLEGAL_STATE, f"No current assignment for partition {pair[0]}-{pair[1]}")
        for pair, offset in zip(partitions, offsets, strict=True):
            if offset < 0:
                low, high = self.consumer.get_watermark_offsets(TopicPartition(*pair), timeout_s)
                offset = high if offset == OFFSET_END else low
            self._forget({pair})
            self._seek(TopicPartition(*pair, offset))

    def _seek(self, to: TopicPartition) -> None:
        """Seek again and again: librdkafka refuses until a partition that was just assigned has begun to be fetched."""
        end = time.monotonic() + SEEK_SECONDS
        while True:
            try:
                return self.consumer.seek(to)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > end:
                    raise
            time.sleep(0.02)

    def read(self, decode: Callable[[Message], T], timeout_ms: int, most_bytes: int) -> list[T]:
        """Read records until the time is over or there are enough. One that cannot be decoded is reported once,
        alone."""
        if self.mode is None:
            raise refusal(ILLEGAL_STATE, "Consumer is not subscribed to any topics or assigned any partitions")
        found: list[T] = []
        size, end = 0, time.monotonic() + timeout_ms / 1000
        while not self.closing.is_set():
            while self._waiting:
                following = len(self._waiting[0])
                if found and size + following > most_bytes:
                    return found
                if not self._give(decode, found):
                    return found
                size += following
            left = end - time.monotonic()
            if left <= 0 or size >= most_bytes or (self.min_bytes > 0 and size >= self.min_bytes):
                break
            self._fetch(min(left, PATIENCE_SECONDS))
        return found

    def _give(self, decode: Callable[[Message], T], found: list[T]) -> bool:
        message = self._waiting[0]
        try:
            found.append(decode(message))
        except HttpError:
            if found:
                return False
            self._passed(self._waiting.popleft())
            raise
        self._passed(self._waiting.popleft())
        return True

    def _passed(self, message: Message) -> None:
        pair, offset = (message.topic() or "", message.partition() or 0), (message.offset() or 0) + 1
        self._given[pair] = offset
        with contextlib.suppress(KafkaException):  # the partition was taken away in this moment
            self.consumer.store_offsets(offsets=[TopicPartition(*pair, offset)])

    def _fetch(self, timeout_s: float) -> None:
        for message in self.consumer.consume(FETCHED_AT_ONCE, timeout_s):
            error = message.error()
            if error is None:
                self._waiting.append(message)
            elif not (error.retriable() or error.code() in PASSING):
                raise KafkaException(error)

    def commit(self, offsets: list[TopicPartition] | None, asynchronous: bool) -> None:
        """Commit these, or what was given out so far."""
        if offsets is None:
            offsets = [TopicPartition(*pair, offset) for pair, offset in self._given.items()]
        if not offsets:
            return
        if asynchronous:
            self.consumer.commit(offsets=offsets, asynchronous=True)
            return
        for one in self.consumer.commit(offsets=offsets, asynchronous=False):
            if one.error:
                raise KafkaException(one.error)

    def committed(self, partitions: list[tuple[str, int]], timeout_s: float) -> list[TopicPartition]:
        asked = [TopicPartition(*pair) for pair in partitions]
        found = self.consumer.committed(asked, timeout_s) if asked else []
        for one in found:
            if one.error:
                raise KafkaException(one.error)
        return [one for one in found if one.offset >= 0]

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget({(one.topic, one.partition) for one in partitions})

    def _forget(self, pairs: set[tuple[str, int]] | None) -> None:
        """Drop what waits of partitions that are not read on from where they were, or of all."""
        keep = [one for one in self._waiting if pairs and (one.topic(), one.partition()) not in pairs]
        self._waiting = deque(keep)
        for pair in list(self._given):
            if pairs is None or pair in pairs:
                del self._given[pair]


# What a consumer gets over by itself.
PASSING = (
    KafkaError._PARTITION_EOF,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._MAX_POLL_EXCEEDED,
)


class Instances:
    """All instances by group and name."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._rows: dict[tuple[str, str], Instance] = {}
        self._threads = ThreadPoolExecutor(settings["consumer.threads"], "consumer")
        self._lifetime_s = settings.seconds("consumer.instance.timeout.ms")

    def create(
        self, group: str, name: str | None, format: str, options: dict[str, str], numbers: tuple[int, int]
    ) -> Instance:
        server = self._settings["id"]
        name = name or f"rest-consumer-{server + '-' if server else ''}{uuid.uuid4()}"
        if (group, name) in self._rows:
            raise refusal(INSTANCE_EXISTS)
        if len(self._rows) >= self._settings["max.consumer.instances"]:
            raise HttpError(TOO_MANY, "There are too many consumer instances: delete some, or try again later.")
        given = librdkafka(self._settings, "consumer.")
        own = {"group.id": group, "enable.auto.offset.store": "false"}
        try:
            made = Consumer({**given, **options, **own})
        except KafkaException as error:
            raise refusal(WRONG_CONSUMER, error.args[0].str()) from None
        found = self._rows[group, name] = Instance(made, group, name, format, *numbers)
        found.expires = time.monotonic() + self._lifetime_s
        return found

    def find(self, group: str, name: str) -> Instance:
        found = self._rows.get((group, name))
        if found is None:
            raise refusal(INSTANCE_NOT_FOUND)
        return found

    async def use(self, group: str, name: str, work: Callable[[Instance], T]) -> T:
        """Do something that blocks with an instance, alone."""
        async with self._held(group, name) as instance:
            return await self._run(call_kafka, work, instance)

    @contextlib.asynccontextmanager
    async def _held(self, group: str, name: str) -> AsyncIterator[Instance]:
        instance = self.find(group, name)
        async with instance.lock:
            self.find(group, name)  # it may have been deleted in the meantime
            try:
                yield instance
            finally:
                instance.expires = time.monotonic() + self._lifetime_s

    async def delete(self, group: str, name: str) -> None:
        instance = self.find(group, name)
        del self._rows[group, name]
        await self._close(instance)

    async def _close(self, instance: Instance) -> None:
        instance.closing.set()
        async with instance.lock:
            await self._run(instance.consumer.close)

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run in a thread that nobody interrupts: a request that is given up holds the lock until its thread is
        done."""
        work = asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    @property
    def look_every_s(self) -> float:
        return min(EXPIRY_SECONDS, self._lifetime_s / 4)

    async def expire(self) -> None:
        """Close instances that were not used for long enough."""
        now = time.monotonic()
        for key, instance in list(self._rows.items()):
            if instance.expires < now and not instance.lock.locked():
                del self._rows[key]
                await self._close(instance)

    def close(self) -> None:
        """Leave all groups at the end of the process."""
        for instance in self._rows.values():
            instance.closing.set()
            instance.consumer.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

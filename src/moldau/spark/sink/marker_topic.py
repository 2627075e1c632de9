"""The marker topic: created if it is missing, read to its end, and written to. `markers.py` says what it holds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from moldau.client import (
    Client,
    ClientError,
    Error,
    Record,
    Transaction,
    TransactionalProducer,
    build,
    check,
    end,
    messages,
)
from moldau.spark import admin
from moldau.spark.sink.markers import (
    PARTITIONS,
    Book,
    Decision,
    Marker,
    Refused,
    batch_key,
    decision_value,
    partition_of,
    task_key,
    torn,
    transactional_id,
)
from moldau.spark.sink.offset_log import end_offsets
from moldau.topicstore import UNCOMMITTED, Reader, append, exists, settings_of

SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),  # what is not compacted is read by every new worker: keep it small
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
}
PAUSE_S = 0.01
MOST_LEDGERS = 64  # that a process keeps
AT_ONCE = 8  # transactions that are ended at the same time
# Errors of a transaction that can no longer be ended: another producer has taken over its id, it timed out, or its id
# was forgotten. Its marker tells whether it was committed.
GONE = frozenset(
    {
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_EPOCH,
        Error.INVALID_TXN_STATE,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class Ledger:
    """One application's part of the marker topic. One thread at a time. The client must not create topics by itself."""

    def __init__(self, client: Client, topic: str, application: str, partition: int | None = None) -> None:
        self.application = application
        self._client, self._topic, self._chosen, self._partition = client, topic, partition, partition
        self._book = Book()
        self._reader = Reader(client, topic, self._open, isolation_level=UNCOMMITTED, partitions=self._locate)

    def _open(self, _: int, start: int) -> Book:
        self._book = Book(start)
        return self._book

    def _locate(self) -> tuple[int]:
        if self._chosen is None:
            make_topic(self._client, self._topic)
            self._partition = partition_of(self.application, len(self._client.topic(self._topic).partitions))
        return (self.place[1],)

    @property
    def decision(self) -> Decision | None:
        """Return the last decision that was read."""
        return self._book.decisions.get(self.application)

    @property
    def decisions(self) -> dict[str, Decision]:
        """Return the decisions of all applications that share the partition."""
        return self._book.decisions

    def marker(self, task: int) -> Marker | None:
        return self._book.markers.get((self.application, task))

    @property
    def place(self) -> tuple[str, int]:
        """Return the partition for the markers of this application."""
        if self._partition is None:
            self._locate()
        assert self._partition is not None
        return self._topic, self._partition

    def catch_up(self) -> None:
        """Read up to the high watermark, from the start if the topic was deleted and created again."""
        try:
            self._reader.read_to_end()
        except ClientError as error:
            if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            self._client.refresh([self._topic])
            self._reader.begin()
            self._reader.read_to_end()

    def settle(self, decision: Decision) -> frozenset[int]:
        """Commit what was decided and is still open; return the tasks that were not committed after all.

        A coordinator answers before the partitions have their markers, so this waits until the topic has them.
        """
        rows = [
            Transaction(transactional_id(self.application, task), *one)
            for task, one in enumerate(decision.transactions)
            if one is not None
        ]
        end_all(self._client, rows, commit=True)
        deadline = self._client.deadline()
        self.catch_up()
        while self._book.is_open(decision) and not deadline.passed:
            time.sleep(PAUSE_S)
            self.catch_up()
        return torn(decision, self.application, self._book.markers)

    def decide(self, decision: Decision) -> None:
        """Write a decision; it is in all replicas when this returns."""
        self._put([(batch_key(self.application), decision_value(decision))])

    def hand_on(self) -> str:
        """Let a query with another checkpoint take the application over; return the offsets where it must begin."""
        self.catch_up()
        decision = self.decision
        if decision is None:
            raise Refused(f"application {self.application} has written nothing that is remembered")
        if not decision.released and self.settle(decision):
            raise Refused(
                f"batch {decision.batch} of application {self.application} was written in part: start it with its own "
                f"checkpoint{f' ({decision.checkpoint})' if decision.checkpoint else ''}, which completes the batch"
            )
        if len(decision.offsets) != 1 or decision.offsets[0] is None:
            raise Refused(
                f"application {self.application} has written batch {decision.batch}, but the offsets up to which it "
                f"had read are not known: its sink could not read the checkpoint, or it has {len(decision.offsets)} "
                f"sources. Find them out, and run `moldau spark reset {self.application}`"
            )
        if not decision.released:
            abort_left(self._client, self.application)  # nothing that is open now can be committed after this
            self.decide(replace(decision, released=True))
        return decision.offsets[0]

    def forget(self) -> None:
        """Remove everything about the application."""
        tasks = [task for application, task in self._book.markers if application == self.application]
        self._put([(batch_key(self.application), None), *((task_key(self.application, task), None) for task in tasks)])

    def _put(self, rows: list[tuple[bytes, bytes | None]]) -> None:
        """Write without a producer id, which would be new each time; writing twice changes nothing."""
        now = int(time.time() * 1000)
        append(self._client, *self.place, build(Record(0, now, key, value) for key, value in rows))


_ledgers: dict[tuple[int, str, str], tuple[Client, Ledger]] = {}


def ledger_for(client: Client, topic: str, application: str) -> Ledger:
    """Return the cached ledger of this process, which continues reading where it was."""
    key = (id(client), topic, application)
    if key not in _ledgers:
        if len(_ledgers) >= MOST_LEDGERS:
            _ledgers.clear()
        _ledgers[key] = client, Ledger(client, topic, application)
    return _ledgers[key][1]


def everyone(client: Client, topic: str) -> dict[str, Decision]:
    """Return the last decision of every application."""
    make_topic(client, topic)
    decisions: dict[str, Decision] = {}
    for partition in client.topic(topic).partitions:
        ledger = Ledger(client, topic, "", partition)
        ledger.catch_up()
        decisions |= ledger.decisions
    return decisions


def resumed(client: Client, topic: str, application: str) -> dict[str, Any] | None:
    """Return the offsets where an application continues; None for a new one, which begins by its options.

    Spark asks a source for its beginning without a checkpoint, and again when it replays the first batch of one.
    """
    if not exists(client, topic):
        return None
    ledger = Ledger(client, topic, application)
    ledger.catch_up()
    decision = ledger.decision
    if decision is None:
        return None
    offsets = decision.began if is_first(decision) else ledger.hand_on()
    return None if offsets is None else json.loads(offsets)


def is_first(decision: Decision) -> bool:
    """Tell whether a decision is of the first batch of a checkpoint that still exists.

    A query with another checkpoint that takes this for its own is refused by the sink.
    """
    if decision.batch or decision.released or not decision.offsets:
        return False
    return end_offsets(decision.checkpoint, 0) == decision.offsets


def end_all(
    client: Client, open_ones: Iterable[Transaction], commit: bool, timeout_s: float | None = None
) -> list[Transaction]:
    """Commit or abort many transactions at the same time; return those that could no longer be ended."""
    rows = list(open_ones)
    if len(rows) < 2:
        return [one for one in rows if not _end(client, one, commit, timeout_s)]
    with ThreadPoolExecutor(min(AT_ONCE, len(rows))) as pool:
        outcomes = list(pool.map(lambda one: _end(client, one, commit, timeout_s), rows))
    return [one for one, ended in zip(rows, outcomes, strict=True) if not ended]


def _end(client: Client, open_one: Transaction, commit: bool, timeout_s: float | None) -> bool:
    try:
        end(client, open_one, commit, timeout_s=timeout_s)
    except ClientError as error:
        if error.error in GONE:
            return False
        raise
    return True


def abort_left(client: Client, application: str) -> None:
    """Abort what tasks of an earlier run left open, because readers of committed records would wait for it.

    Between two batches no transaction of a query is open.
    """
    pattern = re.compile(re.escape(transactional_id(application, 0))[:-1] + r"\d+")
    for answer in client.send_to_each(messages.ListTransactionsRequest(state_filters=["Ongoing"])).values():
        for row in check(answer).transaction_states:
            if pattern.fullmatch(row.transactional_id):
                TransactionalProducer(client, row.transactional_id).close()


def make_topic(client: Client, topic: str) -> None:
    """Create the marker topic unless it exists; refuse one that is not compacted, which would lose markers."""
    if exists(client, topic):
        _check_policy(client, topic)
        return
    try:
        admin.make_topic(client, topic, PARTITIONS, SETTINGS)
    except ClientError as error:
        if error.retriable:
            raise
        raise Refused(
            f"the marker topic {topic} cannot be made ({error}): make it with {PARTITIONS} partitions and "
            f"cleanup.policy=compact, or write with processing.guarantee=at_least_once"
        ) from error


def _check_policy(client: Client, topic: str) -> None:
    policy = settings_of(client, topic, "cleanup.policy").get("cleanup.policy", "compact")
    if policy != "compact":
        raise Refused(
            f"the marker topic {topic} has cleanup.policy={policy}, and would forget what was written: set it to "
            f"compact, or name another topic by markers.topic"
        )

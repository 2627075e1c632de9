"""Tasks of Java connectors, as the worker's threads see them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.connect.connector import Offsets, SinkContext, SourceContext, TopicPartition
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError
from moldau.connect.jvm.catalogue import Entry
from moldau.connect.jvm.host import Host
from moldau.connect.jvm.link import PENDING, STEP_S, JavaError, Link, TookTooLong, java_error

log = logging.getLogger(__name__)
POLL_S = 0.5  # a poll that takes longer goes on while the thread does other things
STOP_S = 4.0  # how long a task that is to end is waited for
CANCEL_S = 1.0
MOST_UNCOMMITTED = 20_000  # records that a task keeps until it hears that they are committed


def patiently(link: Link, context: SourceContext | SinkContext, *words: Any) -> Any:
    """Call a task, however long it takes; once the worker wants it to end, only a while longer."""
    link.begin(*words)
    ends_by: float | None = None
    while (found := link.wait(STEP_S)) is PENDING:
        if ends_by is None and context.wait(0):
            ends_by = time.monotonic() + STOP_S
        if ends_by is not None and time.monotonic() > ends_by:
            raise TookTooLong(f"The plugin does not return from {words[0]}, and the task is to end.")
    return found


def end(link: Link, name: str) -> None:
    """Stop a task. One that does not return from what it does is interrupted, and left to itself."""
    try:
        if link.is_busy and link.wait(STOP_S) is PENDING:
            log.warning("%s does not return; it is cancelled", name)
            link.note("cancel")
            link.wait(CANCEL_S)
        else:
            link.call("stop", timeout_s=STOP_S)
    except ConnectError as error:
        log.warning("%s has not stopped cleanly: %s", name, error)
    finally:
        link.close()


class JavaSource:
    """A task of a source. While a poll takes long the worker's thread commits, rests or ends as usual, and it polls
    again while the worker's thread converts and writes what it has.
    """

    wants_commit = False

    def __init__(self, host: Host, entry: Entry, context: SourceContext) -> None:
        self._context, self._name = context, entry.class_name
        self.boundaries: Sequence[tuple[int, bool]] = ()
        self._uncommitted = 0
        words = entry.location, entry.class_name, context.draws_boundaries
        self._link = host.link("source", *words, told={"offsets": self._offsets})
        try:
            self._keeps_records, self._polls_ahead = patiently(self._link, context, "start", dict(context.config))
        except BaseException:
            self.close()
            raise

    def _offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        found = map(self._context.offset, partitions)
        return [None if one is None else dict(one) for one in found]

    def poll(self) -> Sequence[Record]:
        self.boundaries = ()
        if not self._link.is_busy:
            self._link.begin("poll")
        found = self._link.wait(POLL_S)
        if found is PENDING:
            return ()
        records, self.boundaries = found
        if records and self._polls_ahead:
            self._link.begin("poll")
        self._uncommitted += len(records)
        self.wants_commit = self._keeps_records and self._uncommitted >= MOST_UNCOMMITTED
        return records

    def committed(self) -> None:
        self._link.note("committed", self._uncommitted)
        self._uncommitted, self.wants_commit = 0, False

    def close(self) -> None:
        end(self._link, self._name)


class JavaSink:
    """A task of a sink."""

    wants_empty = True  # Connect calls put also when there is nothing new, and sinks rely on it
    reports_late = True  # a record may be reported after its put

    def __init__(self, host: Host, entry: Entry, context: SinkContext) -> None:
        self._context, self._name = context, entry.class_name
        self._starts: dict[TopicPartition, int] | None = None
        self._failure: ConnectError | None = None
        self._is_closed = False
        told = {
            "offset": self._offset,
            "timeout": lambda ms: context.retry_after(ms / 1000),
            "pause": lambda rows: context.pause([(topic, number) for topic, number in rows]),
            "resume": lambda rows: context.resume([(topic, number) for topic, number in rows]),
            "commit": context.request_commit,
            "report": self._report,
            "member": lambda _: list(context.member()),
            "committed": self._committed,
        }
        self._link = host.link("sink", entry.location, entry.class_name, context.has_reporter, told=told)
        try:
            patiently(self._link, context, "start", dict(context.config))
        except BaseException:
            self.close()
            raise

    def _offset(self, rows: Sequence[Any]) -> None:
        """Take where the task wants to read on: when partitions are opened that is where to begin."""
        wanted = {(topic, int(number)): int(offset) for topic, number, offset in rows}
        if self._starts is not None:
            self._starts |= wanted
        else:
            self._context.seek(wanted)

    def _committed(self, rows: Sequence[Any]) -> list[list[Any]]:
        found = self._context.committed([(topic, int(number)) for topic, number in rows])
        return [[topic, number, offset] for (topic, number), offset in found.items()]

    def _report(self, given: Mapping[str, Any]) -> None:
        topic, partition, offset = given["topic"], given["partition"], given["offset"]
        place = {"original_topic": topic, "original_partition": partition, "original_offset": offset}
        try:
            self._context.report(Record(topic, partition, offset=offset, **place), java_error(given["error"]))
        except ConnectError as error:  # the plugin may not look; the task fails in any case
            self._failure = error
            raise

    def _call(self, *words: Any) -> Any:
        try:
            made = patiently(self._link, self._context, *words)
        except JavaError as error:
            raise self._failure or error from None
        if self._failure is not None:
            raise self._failure
        return made

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        if not partitions:  # Connect tells a task of some, or nothing
            return {}
        self._starts = {}
        try:
            self._call("open", rows_of(partitions))
            return self._starts
        finally:
            self._starts = None

    def put(self, records: Sequence[Record]) -> None:
        self._call("put", records)

    def flush(self, offsets: Offsets) -> Offsets:
        rows = [[topic, number, offset] for (topic, number), offset in offsets.items()]
        safe = self._call("flush", rows)
        return {(topic, int(number)): offset for topic, number, offset in safe}

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Give back partitions."""
        if partitions and not self._is_closed:
            self._call("close", rows_of(partitions))

    def close(self) -> None:
        self._is_closed = True
        end(self._link, self._name)


def rows_of(partitions: Sequence[TopicPartition]) -> list[list[Any]]:
    return [[topic, number] for topic, number in partitions]

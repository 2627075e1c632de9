"""What a connector is to a worker: its settings, how its work is divided into tasks, and what a task does.

A connector is a small object without state of its own. A task belongs to one thread: it is opened, polled (or given
records) and closed there. What it raises fails this task alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from moldau.client.librdkafka import GroupMember
from moldau.connect.config_def import ConfigDef
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition

SOURCE, SINK = "source", "sink"
TopicPartition = tuple[str, int]
Offsets = Mapping[TopicPartition, int]
Config = Mapping[str, str]
NOBODY = GroupMember("", -1, "", None)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a task of a source works with. `wait` sleeps so many seconds, less if the task is to end."""

    config: Config
    offset: Callable[[SourcePartition], SourceOffset | None]
    wait: Callable[[float], bool]
    draws_boundaries: bool = False  # `transaction.boundary` is connector


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a task of a sink works with. `report` hands a record that the target refuses to the dead-letter topic; it
    raises where `errors.tolerance` is none.
    """

    config: Config
    report: Callable[[Record, Exception], None]
    wait: Callable[[float], bool]
    has_reporter: bool = True  # somebody looks at what is reported
    seek: Callable[[Offsets], None] = lambda _: None
    pause: Callable[[Sequence[TopicPartition]], None] = lambda _: None
    resume: Callable[[Sequence[TopicPartition]], None] = lambda _: None
    request_commit: Callable[[], None] = lambda: None
    retry_after: Callable[[float], None] = lambda _: None
    member: Callable[[], GroupMember] = lambda: NOBODY  # who reads, for those who commit offsets themselves
    committed: Callable[[Sequence[TopicPartition]], Offsets] = lambda _: {}


class SourceTask(Protocol):
    """One task of a source. One whose `wants_commit` is true after a poll is committed at once, whatever the interval:
    its system waits for that, as a broker of MQTT does for acknowledgements. One with `committed()` is told when all
    that it has polled is in Kafka, with its offsets; one without is polled on while that is being done.
    """

    def poll(self) -> Sequence[Record]:
        """Return new records; wait for them, but not much longer than a second."""
        ...

    def close(self) -> None: ...


class SinkTask(Protocol):
    """One task of a sink. One whose `wants_empty` is true is also put nothing, when there is nothing; one that
    `reports_late` may report a record until it is committed; one with `revoked` is told which partitions it loses.
    """

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Take on partitions; return where to begin with those whose offsets the target keeps itself."""
        ...

    def put(self, records: Sequence[Record]) -> None: ...

    def flush(self, offsets: Offsets) -> Offsets:
        """Make everything durable that was put; return the offsets that may be committed."""
        ...

    def close(self) -> None: ...


class Connector(Protocol):
    """What kind of thing connects, and how it is divided."""

    kind: str
    task_class: str
    config: ConfigDef
    exactly_once: bool

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Return the configurations of at most so many tasks."""
        ...

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Refuse an offset that somebody wants to set, with a ConnectError."""
        ...

    def open(self, context: Any) -> Any:
        """Make a task."""
        ...


class NotYet(Exception):
    """What is asked for takes its time: ask again."""


@runtime_checkable
class Live(Protocol):
    """A connector that runs beside its tasks, as Java's do: it may want other tasks, or fail, at any time."""

    def configured(
        self, name: str, config: Config, most: int, offset: Callable[[SourcePartition], SourceOffset | None]
    ) -> list[dict[str, str]]:
        """Return the configurations of tasks, of a connector that is started if need be; NotYet while it thinks."""
        ...

    def has_changed(self, name: str) -> bool:
        """Tell whether it wants other tasks; raise what it has failed with."""
        ...

    def release(self, name: str) -> None: ...


def check_text_offset(partition: SourcePartition, of: str, offset: SourceOffset | None, name: str) -> None:
    """Refuse a partition that does not say of what it is, and an offset that is no text."""
    if of not in partition:
        raise ConnectError(f"Partition objects should contain the key '{of}'")
    if offset is not None and not isinstance(offset.get(name), str):
        raise ConnectError(f"Offset objects should either be null or contain the key '{name}' with a text")

"""Connectors in a few lines of Python: a source is a generator, a sink a function.

    @source
    def weather(config: Weather, offsets: Offsets) -> Iterator[Record]:
        for row in readings(config.url, since=offsets.get("at", 0)):
            yield Record(key=row["city"], value=row, offset={"at": row["at"]})

    @sink
    def mail(config: Mail, rows: list[Row]) -> None: ...

The functions name what they want as parameters. A source: `config`, `offsets`, `task`. A sink: `config`, `rows`,
`task`, and `target` if the decorator was told what to keep open. A package offers its connectors as entry points of the
group `moldau.connectors`.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import Importance, Key, Kind, non_empty
from moldau.connect.connector import SINK, SOURCE, Config, SinkContext, SourceContext, TopicPartition
from moldau.connect.connector import Offsets as Ends
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.sdk_settings import definition_of, instance
from moldau.connect.shapes import Shape, plain

TOPIC = Key("topic", importance=Importance.HIGH, doc="The topic that gets the records.", validator=non_empty)
QUEUED = 1000  # records that a generator may be ahead
POLL_S = 0.5
LOOK_S = 0.1  # between looks whether a generator that is ahead is to end


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a source. `offset` is where to go on after it; `source` names the part of the source that this offset
    belongs to, where there are several. Without a topic it goes to the one of the setting `topic`.
    """

    value: Any = None
    key: Any = None
    offset: Mapping[str, Any] | None = None
    source: Mapping[str, Any] | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None  # ms since 1970
    headers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a topic, as a sink gets it: plain Python values."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int | None
    headers: Mapping[str, Any]
    refuse: Callable[[str], None] = field(repr=False, compare=False, default=lambda _: None)  # to the dead letters


@dataclass(frozen=True, slots=True)
class Offsets:
    """What was committed before: of the source as a whole, or of a part of it."""

    read: Callable[[SourcePartition], SourceOffset | None]
    whole: SourcePartition

    def get(self, name: str, default: Any = None) -> Any:
        return self.of(self.whole).get(name, default)

    def of(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.read(part) or {}


@dataclass(frozen=True, slots=True)
class Task:
    """The task that a function runs in. `wait` sleeps, and returns True if the task is to end."""

    number: int
    wait: Callable[[float], bool]


NUMBER = "task.number"  # in the configurations of tasks


class Source:
    """A connector made of a generator. It can still be called, as a test does."""

    kind = SOURCE

    def __init__(
        self, function: Callable[..., Any], settings: type | None, schema: Any, split: str | None, exactly_once: bool
    ) -> None:
        self._function, self._settings, self.schema = function, settings, schema
        self._names = _names(function, {"config", "offsets", "task"})
        self.exactly_once = exactly_once
        self.task_class = class_name(function)
        own = definition_of(settings)
        self.config = own if TOPIC.name in own.keys else own | [TOPIC]
        if split is not None and (split not in self.config.keys or self.config.keys[split].kind is not Kind.LIST):
            raise TypeError(f"split={split!r} must name a setting of type list[str].")
        self.split = split
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    def __call__(self, *words: Any, **named: Any) -> Any:
        return self._function(*words, **named)

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Return one task, or as many as there are values of the setting to divide."""
        if self.split is None:
            instance(self._settings, self.config, config)
            return [{**config, NUMBER: "0"}]
        values = self.config.parse(config)[self.split]
        parts = [values[n :: min(most, len(values))] for n in range(min(most, len(values)))]
        return [{**config, self.split: ",".join(part), NUMBER: str(n)} for n, part in enumerate(parts)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Any offset may be set: only the function knows what it means."""

    def open(self, context: SourceContext) -> Feeding:
        return Feeding(self, context)

    def begin(self, config: Config, offsets: Offsets, task: Task) -> Any:
        """Call the function."""
        given = {"config": instance(self._settings, self.config, config), "offsets": offsets, "task": task}
        return self._function(**{name: given[name] for name in self._names})


class Feeding:
    """A task of a source: the generator runs in a thread, a bounded number of records ahead."""

    def __init__(self, source: Source, context: SourceContext) -> None:
        self._source = source
        self._topic: str = source.config.parse(context.config)["topic"]
        self._whole: SourcePartition = {"source": source.__name__}
        self._key, self._shapes = Shape(), dict[str, Shape]()
        self._queue: queue.Queue[Any] = queue.Queue(QUEUED)
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        offsets = Offsets(context.offset, self._whole)
        task = Task(int(context.config.get(NUMBER, "0")), self._ended.wait)
        made = source.begin(context.config, offsets, task)
        self._thread = threading.Thread(target=self._feed, args=(made,), name=f"source {source.__name__}", daemon=True)
        self._thread.start()

    def _feed(self, made: Any) -> None:
        self._failure = self._outcome(made)

    def _outcome(self, made: Any) -> BaseException | None:
        """Run the generator to its end; return what it raised, be it an exit: the task fails with it."""
        try:
            if hasattr(made, "__aiter__"):
                asyncio.run(self._feed_async(made))
            else:
                with closing(made):
                    for one in made:
                        if not self._offer(one):
                            break
        except BaseException as error:
            return error
        return None

    async def _feed_async(self, made: Any) -> None:
        async for one in made:
            while not self._ended.is_set() and self._queue.full():
                await asyncio.sleep(LOOK_S)
            if not self._offer(one):
                break
        await made.aclose()

    def _offer(self, one: Any) -> bool:
        """Hand a record on; return False if the task has ended. None hands on nothing."""
        while not self._ended.is_set():
            try:
                if one is not None:
                    self._queue.put(one, timeout=LOOK_S)
                return True
            except queue.Full:
                continue
        return False

    def poll(self) -> Sequence[data.Record]:
        found: list[Any] = []
        is_over = not self._thread.is_alive()
        with suppress(queue.Empty):
            found.append(self._queue.get(timeout=POLL_S))
            while len(found) < QUEUED:
                found.append(self._queue.get_nowait())
        if not found and is_over and self._failure is not None:
            raise self._failure
        return [self._made(one) for one in found]

    def _made(self, one: Any) -> data.Record:
        record = one if isinstance(one, Record) else Record(one)
        topic = record.topic or self._topic
        if record.offset is not None and record.source is None and self._source.split is not None:
            raise ConnectError("A source with several tasks must name the part that an offset belongs to (source=).")
        shape = self._shapes.setdefault(topic, Shape(self._source.schema))
        key_schema, key = self._key.take(record.key)
        value_schema, value = shape.take(record.value)
        headers = tuple(data.Header(name, *Shape().take(each)) for name, each in record.headers.items())
        when = time.time_ns() // 1_000_000 if record.timestamp is None else record.timestamp
        part = None if record.offset is None else record.source or self._whole
        return data.Record(
            topic, record.partition, key_schema, key, value_schema, value, when, headers, part, record.offset
        )

    def close(self) -> None:
        """Let the generator end at its next record; one that never comes back is left behind, and nobody listens."""
        self._ended.set()
        self._thread.join(POLL_S)


Using = Callable[[Any], AbstractContextManager[Any]]


class Sink:
    """A connector made of a function. It can still be called, as a test does."""

    kind = SINK
    exactly_once = False  # of sources: what a sink stores itself is asked for with `stored`

    def __init__(
        self,
        function: Callable[..., Any],
        settings: type | None,
        using: Using | None,
        stored: Callable[[Any, Sequence[TopicPartition]], Ends] | None,
    ) -> None:
        self._function, self._settings = function, settings
        self._names = _names(function, {"config", "rows", "task"} | ({"target"} if using else set()))
        self.using, self.stored = using, stored
        self.task_class = class_name(function)
        self.config = definition_of(settings)
        self.takes_arrow = _annotation(function, "rows").endswith("Table")
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    def __call__(self, *words: Any, **named: Any) -> Any:
        return self._function(*words, **named)

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        instance(self._settings, self.config, config)
        return [{**config, NUMBER: str(number)} for number in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Putting:
        return Putting(self, context, instance(self._settings, self.config, context.config))

    def give(self, **given: Any) -> None:
        """Call the function."""
        self._function(**{name: given[name] for name in self._names})


class Putting:
    """A task of a sink."""

    def __init__(self, sink: Sink, context: SinkContext, config: Any) -> None:
        self._sink, self._context, self._config = sink, context, config
        self._task = Task(int(context.config.get(NUMBER, "0")), context.wait)
        self._open = ExitStack()
        self._target = self._open.enter_context(sink.using(config)) if sink.using else None

    def open(self, partitions: Sequence[TopicPartition]) -> Ends:
        stored = self._sink.stored
        return {} if stored is None else stored(self._target if self._sink.using else self._config, partitions)

    def put(self, records: Sequence[data.Record]) -> None:
        rows: Any = [self._row(one) for one in records]
        if self._sink.takes_arrow:
            import pyarrow as pa

            rows = pa.Table.from_pylist([row.value for row in rows if row.value is not None])
        self._sink.give(config=self._config, rows=rows, task=self._task, target=self._target)

    def _row(self, one: data.Record) -> Row:
        def refuse(why: str) -> None:
            self._context.report(one, ConnectError(why))

        return Row(
            one.topic,
            one.original_partition if one.original_partition is not None else one.partition or 0,
            one.original_offset if one.original_offset is not None else one.offset or 0,
            plain(one.key_schema, one.key),
            plain(one.value_schema, one.value),
            one.timestamp,
            {header.name: plain(header.schema, header.value) for header in one.headers},
            refuse,
        )

    def flush(self, offsets: Ends) -> Ends:
        return offsets

    def close(self) -> None:
        self._open.close()


def source(
    function: Callable[..., Any] | None = None,
    *,
    settings: type | None = None,
    schema: Any = None,
    split: str | None = None,
    exactly_once: bool = True,
) -> Any:
    """Make a source of a generator, which may be asynchronous.

    `schema` is a dataclass, a TypedDict or a schema of Connect; otherwise it is inferred. `split` names a setting of
    type list[str] that is divided among the tasks. A source is exactly once if each record has an offset and it goes on
    from there; one that cannot says `exactly_once=False`.
    """

    def make(one: Callable[..., Any]) -> Source:
        if not (inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one)):
            raise TypeError(f"{one.__name__} must be a generator: a function that yields records.")
        return Source(one, settings or _settings(one), schema, split, exactly_once)

    return make if function is None else make(function)


def sink(
    function: Callable[..., Any] | None = None,
    *,
    settings: type | None = None,
    using: Using | None = None,
    stored: Callable[[Any, Sequence[TopicPartition]], Ends] | None = None,
) -> Any:
    """Make a sink of a function that gets a list of rows, or a pyarrow.Table of values where it says so.

    `using` makes what the function gets as `target`: a context manager of the settings, open as long as the task is. A
    target that keeps offsets together with the data is asked by `stored(target or config, partitions)` where to begin.
    """

    def make(one: Callable[..., Any]) -> Sink:
        return Sink(one, settings or _settings(one), using, stored)

    return make if function is None else make(function)


def class_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def _names(function: Callable[..., Any], known: set[str]) -> tuple[str, ...]:
    names = tuple(inspect.signature(function).parameters)
    if unknown := [name for name in names if name not in known]:
        raise TypeError(f"{function.__name__} has a parameter {unknown[0]}; it can have {', '.join(sorted(known))}.")
    return names


def _annotation(function: Callable[..., Any], name: str) -> str:
    found = inspect.signature(function).parameters.get(name)
    hint = found.annotation if found else ""
    return hint if isinstance(hint, str) else getattr(hint, "__name__", "")


def _settings(function: Callable[..., Any]) -> type | None:
    """Return the class that the parameter `config` is annotated with."""
    found = inspect.signature(function).parameters.get("config")
    hint = found.annotation if found else None
    if isinstance(hint, str):
        hint = function.__globals__.get(hint)
    if found is not None and not isinstance(hint, type):
        raise TypeError(f"Annotate the parameter config of {function.__name__} with its class, or pass settings=.")
    return hint if isinstance(hint, type) and hint is not inspect.Parameter.empty else None


def loaded(found: Any, where: str) -> Source | Sink:
    """Check what an entry point names."""
    if isinstance(found, Source | Sink):
        return found
    raise ConfigError(f"{where} is not a connector: mark the function with @source or @sink of moldau.connect.")

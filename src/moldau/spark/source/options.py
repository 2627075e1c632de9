"""The options of the source, named as in Spark's Kafka source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from moldau.spark.client_settings import GROUP, PREFIX, client_settings
from moldau.spark.options import (
    Option,
    OptionError,
    boolean,
    duration_ms,
    milliseconds,
    one_of,
    partition_lists,
    partition_numbers,
    positive,
    resolve,
    under,
    words,
)
from moldau.spark.sink.markers import TOPIC as MARKERS
from moldau.spark.source.planning import Cut, Numbers
from moldau.spark.source.typed_options import TYPED, Typed, typed

PREFIXES = (PREFIX, "schema.registry.")
EARLIEST, LATEST = -2, -1
CHOICES = ("subscribe", "subscribePattern", "assign")


def bound(text: str) -> Bound:
    if text.lower() in ("earliest", "latest"):
        return Bound("earliest" if text.lower() == "earliest" else "latest")
    if not text.startswith("{"):
        raise ValueError('it must be earliest, latest, or JSON such as {"orders": {"0": 23, "1": -2}}')
    found = partition_numbers(text)
    if any(number < EARLIEST for number in found.values()):
        raise ValueError("an offset must be from 0 on, or -2 for earliest, or -1 for latest")
    return Bound("offsets", found)


def timestamps(text: str) -> Bound:
    return Bound("timestamps", partition_numbers(text))


def timestamp(text: str) -> Bound:
    return Bound("timestamp", at=milliseconds(text))


def topics(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise ValueError("it must name topics, separated by commas")
    return found


def pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(words(text))
    except (re.error, OverflowError) as error:
        raise ValueError(f"it must be a regular expression: {error}") from None


TABLE = (
    Option("subscribe", topics, None, "Topics, separated by commas."),
    Option("subscribePattern", pattern, None, "A regular expression that names of topics match as a whole."),
    Option("assign", partition_lists, None, 'Partitions, as JSON: `{"orders": [0, 1]}`.'),
    Option(
        "startingOffsets",
        bound,
        None,
        "Where a new query begins: `earliest`, `latest` (a batch job: not), or JSON with an offset for every "
        "partition, -2 for earliest, -1 for latest. Default: `latest`, in a batch job `earliest`. A restarted query "
        "goes on where it was; new partitions are read from their start.",
    ),
    Option("startingTimestamp", timestamp, None, "Begin with the first record of this time (ms) or later."),
    Option("startingOffsetsByTimestamp", timestamps, None, "The same for each partition, as JSON."),
    Option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        "error",
        "What to do where no record is as young as the time asked for: fail, or begin at the end.",
    ),
    Option("endingOffsets", bound, None, "Where a batch job ends: `latest`, or JSON as above."),
    Option("endingTimestamp", timestamp, None, "End before the first record of this time (ms) or later."),
    Option("endingOffsetsByTimestamp", timestamps, None, "The same for each partition, as JSON."),
    Option("maxOffsetsPerTrigger", positive, None, "Most records of a micro-batch, shared out by what is waiting."),
    Option("minOffsetsPerTrigger", positive, None, "Wait until so many records are there ..."),
    Option("maxTriggerDelay", duration_ms, 15 * 60_000, "... but not longer than this (15m)."),
    Option("minPartitions", positive, None, "At least so many tasks: large partitions are split."),
    Option("maxRecordsPerPartition", positive, None, "Most records of a task: larger ranges are split."),
    Option(
        "maxPartitions",
        positive,
        None,
        "At most so many tasks: small partitions are read together by one. Where none of these three is set a task is "
        "for one partition, or in a stream for up to 200 records of several.",
    ),
    Option("failOnDataLoss", boolean, True, "Whether a query fails, or goes on, where records are gone."),
    Option("includeHeaders", boolean, False, "Whether there is a column `headers`."),
    Option(
        "application.id",
        words,
        None,
        "The query's own name: the group of its progress if kafka.group.id is none. A new query goes on where a sink "
        "of this name has got to.",
    ),
    Option("markers.topic", words, MARKERS, "The topic in which the sink remembers what it has written."),
    Option("groupIdPrefix", words, None, "The group of its progress if neither of these is set."),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        milliseconds,
        600_000,
        "How long a task waits for brokers that are away before it fails (10 minutes).",
    ),
    Option("fetchOffset.numRetries", milliseconds, None, "Without effect: the client tries again by itself."),
    Option("fetchOffset.retryIntervalMs", milliseconds, None, "Without effect: the client has a back-off."),
    *TYPED,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading begins or ends. `numbers` are offsets or times of partitions; `at` is a time for all."""

    kind: Literal["earliest", "latest", "offsets", "timestamps", "timestamp"]
    numbers: Numbers | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read; one of the three is set."""

    topics: tuple[str, ...] | None = None
    pattern: re.Pattern[str] | None = None
    assigned: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a user, checked."""

    client: Mapping[str, str]
    group: str | None
    subscription: Subscription
    starting: Bound
    ending: Bound
    without_match: str
    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    cut: Cut
    fail_on_data_loss: bool
    headers: bool
    patience_ms: int
    typed: Typed
    application: str | None = None
    markers: str = MARKERS

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
        """Check options, without bounds while it is not known whether they are for a stream or a batch job."""
        values = resolve(TABLE, given, PREFIXES)
        starting = first_of(values, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
        ending = first_of(values, "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
        if streaming is not None:
            check_bounds(starting, ending, streaming)
        return cls(
            client_settings(given),
            under(given, PREFIX).get(GROUP) or values["application.id"] or values["groupIdPrefix"],
            subscription(values),
            starting or Bound("latest" if streaming else "earliest"),
            ending or Bound("latest"),
            values["startingOffsetsByTimestampStrategy"],
            values["maxOffsetsPerTrigger"],
            values["minOffsetsPerTrigger"],
            values["maxTriggerDelay"],
            Cut(values["minPartitions"], values["maxRecordsPerPartition"], values["maxPartitions"]),
            values["failOnDataLoss"],
            values["includeHeaders"],
            values["kafkaConsumer.pollTimeoutMs"],
            typed(values, given),
            values["application.id"],
            values["markers.topic"],
        )


def first_of(values: Mapping[str, Any], *names: str) -> Bound | None:
    return next((values[name] for name in names if values[name] is not None), None)


def subscription(values: Mapping[str, Any]) -> Subscription:
    chosen = [name for name in CHOICES if values[name] is not None]
    if len(chosen) != 1:
        told = " and ".join(chosen) or "none of them"
        raise OptionError(f"Set one of the options {', '.join(CHOICES)} to say what is read; {told} is set.")
    return Subscription(*(values[name] for name in CHOICES))


def check_bounds(starting: Bound | None, ending: Bound | None, streaming: bool) -> None:
    if streaming:
        if ending is not None:
            raise OptionError("A stream has no end: ending options are for spark.read, not for spark.readStream.")
        return
    if starting is not None and (starting.kind == "latest" or LATEST in offsets_of(starting)):
        raise OptionError(
            "A batch job that begins at the end has nothing to read: set startingOffsets to an earlier one."
        )
    if ending is not None and (ending.kind == "earliest" or EARLIEST in offsets_of(ending)):
        raise OptionError("A batch job that ends at the start has nothing to read: set endingOffsets to a later one.")


def offsets_of(bound: Bound) -> set[int]:
    return set((bound.numbers or {}).values()) if bound.kind == "offsets" else set()

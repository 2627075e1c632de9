"""What windows, suppress and joins cannot do is refused when the topology is built, by a sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from moldau.streams import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    String,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
)
from moldau.streams.stores import (
    persistent_session_store,
    persistent_versioned_key_value_store,
    persistent_window_store,
)

TEXT: Any = {"key": String(), "value": String()}
Refused = Callable[[StreamsBuilder], object]


def grouped(builder: StreamsBuilder) -> Any:
    return builder.stream("in", **TEXT).group_by_key()


def windowed(builder: StreamsBuilder, windows: Any) -> Any:
    return grouped(builder).windowed_by(windows)


def stream(builder: StreamsBuilder, topic: str = "in") -> Any:
    return builder.stream(topic, **TEXT)


def table(builder: StreamsBuilder, topic: str = "table", **options: Any) -> Any:
    return builder.table(topic, **TEXT, **options)


def pair(one: Any, other: Any) -> str:
    return f"{one} {other}"


HISTORY = persistent_versioned_key_value_store("history", "1 day")
FINAL = Suppressed.until_window_closes()
HOUR = JoinWindows.of("1 hour")

REFUSALS: dict[str, tuple[Refused, str]] = {
    "size": (lambda _: TimeWindows.of(0), "must be larger than zero"),
    "advance": (
        lambda _: TimeWindows.of(10, advance=11),
        "less than window duration which is 10 ms",
    ),
    "gap": (lambda _: SessionWindows.of(0), "cannot be zero or negative"),
    "grace": (lambda _: SlidingWindows.of(10, grace=-1), "must not be negative"),
    "span": (lambda _: JoinWindows.of(before=-5, after=3), "must not be negative"),
    "duration": (lambda _: TimeWindows.of("5 parsecs"), "write it as '5 minutes'"),
    "windows": (lambda b: grouped(b).windowed_by("5 minutes"), "TimeWindows.of"),
    "cogroup": (lambda b: grouped(b).cogroup(pair).windowed_by(HOUR), "TimeWindows.of"),
    "retention": (
        lambda b: windowed(b, TimeWindows.of(10, grace=5)).count(retention=14),
        "at least 15 ms, the window size plus the grace period",
    ),
    "sliding retention": (
        lambda b: windowed(b, SlidingWindows.of(10, grace=5)).count(retention=20),
        "at least 25 ms, twice the time difference",
    ),
    "kind of store": (
        lambda b: windowed(b, TimeWindows.of(10)).count(store=persistent_session_store("s", 100)),
        "is a session store: these windows need a window store",
    ),
    "store that forgets": (
        lambda b: windowed(b, SessionWindows.of(10)).count(store=persistent_session_store("s", 5)),
        "at least 10 ms",
    ),
    "small store": (lambda _: persistent_window_store("w", 5, 10), "less than its window size, 10 ms"),
    "unlimited": (
        lambda b: windowed(b, UnlimitedWindows.of()).emit_strategy(EmitStrategy.on_window_close()),
        "never close",
    ),
    "not windowed": (lambda b: table(b).suppress(FINAL), "use until_time_limit"),
    "early": (lambda _: Suppressed.until_window_closes(BufferConfig.max_records(5)), "shut_down_when_full"),
    "versioned": (lambda b: table(b, store=HISTORY).suppress(Suppressed.until_time_limit(5)), "not versioned"),
    "no window": (lambda b: stream(b).join(stream(b, "other"), pair), "window=JoinWindows.of"),
    "grace of a stream": (
        lambda b: stream(b).join(stream(b, "other"), pair, window=HOUR, grace=5),
        "that of its window",
    ),
    "window of a table": (lambda b: stream(b).join(table(b), pair, window=HOUR), "window= is for joins with a stream"),
    "grace of a table": (lambda b: stream(b).join(table(b), pair, grace=5), "must be versioned"),
    "two builders": (
        lambda b: stream(b).join(stream(StreamsBuilder("other")), pair, window=HOUR),
        "same StreamsBuilder",
    ),
    "two builders of tables": (
        lambda b: table(b).join(table(StreamsBuilder("other")), pair, foreign_key=str),
        "use one StreamsBuilder",
    ),
    "store of a join": (
        lambda b: stream(b).join(
            stream(b, "other"), pair, window=HOUR, store=persistent_window_store("l", "3 hours", "2 hours")
        ),
        "retain_duplicates=True",
    ),
    "merger": (
        lambda b: windowed(b, SessionWindows.of(5)).aggregate(list, lambda key, value, all: all, lambda one: one),
        "needs a function of",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_is_refused_by_a_sentence(name: str) -> None:
    build, sentence = REFUSALS[name]
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        build(StreamsBuilder("refusals"))


def test_durations_are_texts_milliseconds_or_timedeltas() -> None:
    assert TimeWindows.of("5 minutes", grace="30s") == TimeWindows.of(300_000, grace=timedelta(seconds=30))
    assert TimeWindows.of_size_and_grace("1h", "1m").advance_by("10 min") == TimeWindows(3_600_000, 600_000, 60_000)
    assert SlidingWindows.of_time_difference_with_no_grace("1 s") == SlidingWindows(1_000)
    assert SessionWindows.of_inactivity_gap_and_grace("1 s", 5) == SessionWindows(1_000, 5)
    assert JoinWindows.of("1 s").before("-200 ms").after(timedelta(seconds=-0.2) * -1) == JoinWindows(-200, 200)
    assert JoinWindows.of(before=timedelta(seconds=-1), after=1_500).size_ms == 500
    assert list(UnlimitedWindows.of().start_on(7).windows_for(6)) == []


def test_a_full_buffer_ends_the_application_if_it_shall() -> None:
    builder = StreamsBuilder("full")
    held = Suppressed.until_time_limit("1 hour", BufferConfig.max_bytes(60).shut_down_when_full(), name="held")
    table(builder, "in").suppress(held).to_stream().to("out", **TEXT)
    with TopologyTestDriver(builder, {"statestore.cache.max.bytes": 0}) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("a", "1", 0)
        with pytest.raises(RuntimeError, match=r"held buffer exceeded its max capacity.*\[2/.* records and \[.*/60\]"):
            topic.pipe_input("b", "2", 0)

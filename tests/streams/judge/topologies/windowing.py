"""Aggregates in tumbling, hopping, sliding and unlimited windows."""

from __future__ import annotations

from typing import Any

from moldau.streams import (
    BufferConfig,
    EmitStrategy,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindowedKStream,
    TimeWindows,
    UnlimitedWindows,
)
from tests.streams.judge.functions import ADVANCE, GRACE, SIZE, add, first, joined
from tests.streams.judge.topologies.aggregates import cogrouped
from tests.streams.judge.topologies.sources import NUMBER, TEXT, Build, stream

TUMBLING = TimeWindows.of(SIZE)
TUMBLING_GRACE = TimeWindows.of(SIZE, grace=GRACE)
HOPPING = TimeWindows.of(SIZE, advance=ADVANCE)
HOPPING_GRACE = TimeWindows.of(SIZE, advance=ADVANCE, grace=GRACE)
SLIDING = SlidingWindows.of(SIZE)
SLIDING_GRACE = SlidingWindows.of(SIZE, grace=GRACE)
ON_CLOSE = EmitStrategy.on_window_close()
UNTIL_CLOSE = Suppressed.until_window_closes(BufferConfig.unbounded())


def windowed(b: StreamsBuilder, windows: Any) -> TimeWindowedKStream:
    return stream(b).group_by_key().windowed_by(windows)


def spelled(key: Any) -> str:
    return f"{key.key}@{key.start}-{key.end}"


TIMED: dict[str, Build] = {
    "tumbling_count": lambda b: windowed(b, TUMBLING).count().to_stream().to("out"),
    "tumbling_grace": lambda b: windowed(b, TUMBLING_GRACE).count(store="counts").to_stream().to("out"),
    "tumbling_reduce": lambda b: windowed(b, TUMBLING_GRACE).reduce(joined).to_stream().to("out"),
    "tumbling_aggregate": lambda b: (
        windowed(b, TUMBLING_GRACE).aggregate(lambda: "", add, value=TEXT, store="joined").to_stream().to("out")
    ),
    "tumbling_to_null": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .aggregate(lambda: "", lambda k, v, a: a + v if v else None, value=TEXT, store="joined")
        .to_stream()
        .to("out")
    ),
    "tumbling_retention": lambda b: (
        windowed(b, TUMBLING_GRACE).count(store="counts", retention="3 minutes").to_stream().to("out")
    ),
    "tumbling_in_memory": lambda b: (
        windowed(b, TUMBLING_GRACE).count(store="counts", store_type="in_memory").to_stream().to("out")
    ),
    "hopping_count": lambda b: windowed(b, HOPPING).count(name="hops").to_stream().to("out"),
    "hopping_aggregate": lambda b: (
        windowed(b, HOPPING_GRACE).aggregate(lambda: "", add, value=TEXT).to_stream().to("out")
    ),
}

SLID: dict[str, Build] = {
    "sliding_count": lambda b: windowed(b, SLIDING).count().to_stream().to("out"),
    "sliding_grace": lambda b: windowed(b, SLIDING_GRACE).count(store="counts").to_stream().to("out"),
    "sliding_reduce": lambda b: windowed(b, SLIDING_GRACE).reduce(joined).to_stream().to("out"),
    "sliding_aggregate": lambda b: (
        windowed(b, SLIDING_GRACE).aggregate(lambda: "", add, value=TEXT, store="joined").to_stream().to("out")
    ),
    "sliding_narrow": lambda b: windowed(b, SlidingWindows.of(1, grace=GRACE)).count().to_stream().to("out"),
    "sliding_close": lambda b: windowed(b, SLIDING_GRACE).emit_strategy(ON_CLOSE).count().to_stream().to("out"),
}

UNLIMITED: dict[str, Build] = {
    "unlimited_count": lambda b: windowed(b, UnlimitedWindows.of()).count().to_stream().to("out"),
    "unlimited_start": lambda b: (
        windowed(b, UnlimitedWindows.of(start=10_000)).reduce(joined, store="reduced").to_stream().to("out")
    ),
}

CLOSED: dict[str, Build] = {
    "tumbling_close": lambda b: windowed(b, TUMBLING).emit_strategy(ON_CLOSE).count().to_stream().to("out"),
    "tumbling_close_grace": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .emit_strategy(ON_CLOSE)
        .aggregate(lambda: "", add, value=TEXT, store="joined")
        .to_stream()
        .to("out")
    ),
    "hopping_close": lambda b: windowed(b, HOPPING_GRACE).emit_strategy(ON_CLOSE).reduce(joined).to_stream().to("out"),
    "tumbling_suppress": lambda b: windowed(b, TUMBLING_GRACE).count().suppress(UNTIL_CLOSE).to_stream().to("out"),
    "hopping_suppress": lambda b: (
        windowed(b, HOPPING_GRACE)
        .aggregate(lambda: "", add, value=TEXT, store="joined")
        .suppress(UNTIL_CLOSE.with_name("late"))
        .to_stream()
        .to("out")
    ),
    "sliding_suppress": lambda b: windowed(b, SLIDING_GRACE).count().suppress(UNTIL_CLOSE).to_stream().to("out"),
    "tumbling_suppress_time": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .count()
        .suppress(Suppressed.until_time_limit("3 seconds", BufferConfig.unbounded()))
        .to_stream()
        .to("out")
    ),
}

CHAINS: dict[str, Build] = {
    "cogroup_tumbling": lambda b: (
        cogrouped(b)
        .windowed_by(TUMBLING_GRACE)
        .aggregate(lambda: "", value=TEXT, store="cogrouped")
        .to_stream()
        .to("out")
    ),
    "cogroup_sliding": lambda b: (
        cogrouped(b).windowed_by(SLIDING_GRACE).aggregate(lambda: "", name="together", value=TEXT).to_stream().to("out")
    ),
    "cogroup_unlimited": lambda b: (
        cogrouped(b)
        .windowed_by(UnlimitedWindows.of())
        .aggregate(lambda: "", value=TEXT, store="cogrouped")
        .to_stream()
        .to("out")
    ),
    "windowed_key_mapped": lambda b: windowed(b, TUMBLING_GRACE).count().to_stream(lambda k, n: spelled(k)).to("out"),
    "windowed_filter": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .count()
        .filter(lambda k, n: n % 2 == 0)
        .map_values(lambda k, n: f"{k.key}{n}")
        .to_stream(lambda k, v: k.key)
        .to("out")
    ),
    "windowed_regrouped": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .count()
        .to_stream(lambda k, n: f"{k.key}{n}")
        .group_by_key(key=TEXT, value=NUMBER)
        .windowed_by(TUMBLING)
        .count()
        .to_stream()
        .to("out")
    ),
    "windowed_table_regrouped": lambda b: (
        windowed(b, TUMBLING_GRACE)
        .count()
        .group_by(lambda k, n: (k.key, n), key=TEXT, value=NUMBER)
        .reduce(lambda total, n: total + n, lambda total, n: total - n, store="totals")
        .to_stream()
        .to("out")
    ),
    "group_by_tumbling": lambda b: (
        stream(b)
        .group_by(lambda k, v: first(v))
        .windowed_by(TUMBLING_GRACE)
        .reduce(joined, name="rest", store="letters")
        .to_stream()
        .to("out")
    ),
}

TOPOLOGIES: dict[str, Build] = {**TIMED, **SLID, **UNLIMITED, **CLOSED, **CHAINS}

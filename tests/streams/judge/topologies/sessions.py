"""Aggregates in session windows."""

from __future__ import annotations

from moldau.streams import SessionWindowedKStream, SessionWindows, StreamsBuilder
from tests.streams.judge.functions import GRACE, SIZE, add, joined, text
from tests.streams.judge.topologies.aggregates import cogrouped
from tests.streams.judge.topologies.sources import TEXT, Build, stream
from tests.streams.judge.topologies.windowing import ON_CLOSE, UNTIL_CLOSE, spelled

NO_GRACE = SessionWindows.of(SIZE)
WITH_GRACE = SessionWindows.of(SIZE, grace=GRACE)


def windowed(b: StreamsBuilder, windows: SessionWindows) -> SessionWindowedKStream:
    return stream(b).group_by_key().windowed_by(windows)


def merge(key: str, one: str, other: str) -> str:
    return f"{one}|{other}"


TOPOLOGIES: dict[str, Build] = {
    "session_count": lambda b: windowed(b, NO_GRACE).count().to_stream().to("out"),
    "session_grace": lambda b: windowed(b, WITH_GRACE).count(store="counts").to_stream().to("out"),
    "session_reduce": lambda b: windowed(b, WITH_GRACE).reduce(joined).to_stream().to("out"),
    "session_aggregate": lambda b: (
        windowed(b, WITH_GRACE).aggregate(lambda: "", add, merge, value=TEXT, store="joined").to_stream().to("out")
    ),
    "session_to_null": lambda b: (
        windowed(b, WITH_GRACE)
        .aggregate(lambda: "", lambda k, v, a: text(a) + v if v else None, merge, value=TEXT)
        .to_stream()
        .to("out")
    ),
    "session_retention": lambda b: (
        windowed(b, WITH_GRACE).count(name="kept", store="counts", retention="3 minutes").to_stream().to("out")
    ),
    "session_close": lambda b: windowed(b, WITH_GRACE).emit_strategy(ON_CLOSE).count().to_stream().to("out"),
    "session_close_no_grace": lambda b: (
        windowed(b, NO_GRACE)
        .emit_strategy(ON_CLOSE)
        .aggregate(lambda: "", add, merge, value=TEXT, store="joined")
        .to_stream()
        .to("out")
    ),
    "session_suppress": lambda b: windowed(b, WITH_GRACE).count().suppress(UNTIL_CLOSE).to_stream().to("out"),
    "cogroup_session": lambda b: (
        cogrouped(b)
        .windowed_by(WITH_GRACE)
        .aggregate(lambda: "", merge, value=TEXT, store="cogrouped")
        .to_stream()
        .to("out")
    ),
    "session_key_mapped": lambda b: windowed(b, WITH_GRACE).count().to_stream(lambda k, n: spelled(k)).to("out"),
}

"""Tables whose changes are held back."""

from __future__ import annotations

from moldau.streams import BufferConfig, Suppressed
from tests.streams.judge.functions import ZERO
from tests.streams.judge.topologies.sources import Build, stream, table

UNTIL_5_S = Suppressed.until_time_limit("5 seconds", BufferConfig.unbounded())

TOPOLOGIES: dict[str, Build] = {
    "table_suppress_time": lambda b: table(b).suppress(UNTIL_5_S).to_stream().to("out"),
    "table_suppress_records": lambda b: (
        table(b)
        .suppress(Suppressed.until_time_limit("30 seconds", BufferConfig.max_records(2)).with_name("few"))
        .to_stream()
        .to("out")
    ),
    "table_suppress_bytes": lambda b: (
        table(b).suppress(Suppressed.until_time_limit("30 seconds", BufferConfig.max_bytes(150))).to_stream().to("out")
    ),
    "table_suppress_zero": lambda b: (
        table(b).suppress(Suppressed.until_time_limit(ZERO, BufferConfig.unbounded())).to_stream().to("out")
    ),
    "count_suppress": lambda b: (
        stream(b)
        .group_by_key()
        .count(store="counts")
        .suppress(Suppressed.until_time_limit("5 seconds", BufferConfig.max_records(3)))
        .map_values(lambda n: f"{n}!")
        .to_stream()
        .to("out")
    ),
    "suppress_group_count": lambda b: (
        table(b)
        .suppress(Suppressed.until_time_limit("5 seconds", BufferConfig.unbounded().with_logging_disabled()))
        .group_by(lambda k, v: (v, k))
        .count()
        .to_stream()
        .to("out")
    ),
}

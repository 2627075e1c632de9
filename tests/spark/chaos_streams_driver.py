"""The application under attack: a count in windows and a join of streams, exactly once, every change told."""

from __future__ import annotations

import logging
import sys

from moldau.plan.conveyor.start import Application, definition
from moldau.spark import session
from moldau.spark.runner import run
from moldau.streams import JoinWindows, Long, StreamsBuilder, String, TimeWindows
from moldau.streams.application import application
from tests.spark.chaos_driver import PATIENT

ID = "chaos-streams"
WINDOW_MS = 1000
DAY_MS = 24 * 60 * 60 * 1000


def builder() -> StreamsBuilder:
    """Each number is in both topics at the same time, so it is joined once; each count of a window is told once."""
    made = StreamsBuilder(ID)
    left, right = (made.stream(topic, key=String(), value=String()) for topic in ("in", "right"))
    left.join(right, lambda one, other: one, window=JoinWindows.of(0, grace=DAY_MS)).to(
        "out", key=String(), value=String()
    )
    counts = left.group_by_key().windowed_by(TimeWindows.of(WINDOW_MS, grace=DAY_MS)).count(store="per-second")
    named = counts.to_stream().select_key(lambda window, count: f"{window.key}@{window.start}")
    named.to("counts", key=String(), value=Long())
    return made


def made(bootstrap: str, state_dir: str, rows: int) -> Application:
    settings = {
        "bootstrap.servers": bootstrap,
        "state.dir": state_dir,
        "statestore.cache.max.bytes": 0,
        "commit.interval.ms": 0,
        "spark.maxOffsetsPerTrigger": rows,
    }
    return application(builder().build(), settings)


def main(bootstrap: str, state_dir: str, rows: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    spark = session("chaos", "local[2]", **{"spark.driver.memory": "600m"})
    spark.sparkContext.setLogLevel("OFF")
    one = made(bootstrap, state_dir, int(rows))
    run({one.id: lambda spark: definition(one, spark)}, spark, policy=PATIENT, progress=False)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`python -m benchmarks.sql_cpu`: a batch of each workload of `benchmarks.sql_spark` in this process, without Spark.

It shows what SQL and streams compute for a record, in CPU time, takes a minute, and other loads matter little to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import typer
from rich.console import Console
from tests.plan.in_memory import Conveyor

from benchmarks import sql_page
from benchmarks.places import BenchError
from benchmarks.sql_page import CPU_RATES, DSL, SQL
from benchmarks.sql_spark import CARDS, PAYS, QUERIES, cards, pays
from benchmarks.streams import JSON_INPUTS, KEYS, Kept
from benchmarks.streams_jobs import TEXTS, WORKLOADS
from moldau.operators.record import Raw
from moldau.plan import blobs
from moldau.plan.blobs import OUTSIDE, Blob
from moldau.plan.fallbacks import Fallbacks
from moldau.plan.shards import run
from moldau.plan.stateless_pass import Passing, passing_groups
from moldau.sql.engine import Engine
from moldau.sql.lowering import build
from moldau.streams import StreamsBuilder

TIMES = 3  # the best of which counts


def packed(topic: str, records: Iterator[tuple[bytes, bytes, int]]) -> Iterator[Blob]:
    first = 0
    for data in blobs.of_raw([Raw(topic, 0, at, *record) for at, record in enumerate(records)]):
        yield Blob(topic, 0, OUTSIDE, first, data)
        first += sum(batch.num_rows for batch in blobs.unpacked(data))


def in_sql(workload: str) -> StreamsBuilder:
    engine = Engine()
    engine.execute_text(PAYS + CARDS + QUERIES[workload])
    return build(list(engine.queries.values())[-1])


def in_streams(workload: str) -> StreamsBuilder:
    builder = StreamsBuilder("bench", {**TEXTS, "statestore.cache.max.bytes": "0"})
    WORKLOADS[workload](builder)
    return builder


def seconds(builder: StreamsBuilder, topics: tuple[str, ...], arrived: list[Blob]) -> float:
    """CPU seconds for one batch."""
    made, fallbacks = Conveyor(builder, dict.fromkeys(topics, 1), {}), Fallbacks()
    conveyed = made.conveyed
    began = time.process_time()
    if passing_groups(conveyed):
        passing = Passing(conveyed, {}, fallbacks)
        for blob in arrived:
            list(passing.through(blob))
    else:
        shard = conveyed.schedule.shard_of(topics[0], 0)
        run(conveyed, shard, partial(made.kept, shard), arrived, 0, {}, None, fallbacks)
    took = time.process_time() - began
    if found := fallbacks.drain(conveyed.start):
        raise BenchError(f"A batch was processed record by record: {found}.")
    return took


def main(records: int = 50_000, keep: bool = True) -> None:
    kept = Kept.read(Console(), CPU_RATES)
    filled = {"pays": list(packed("pays", pays(records))), "cards": list(packed("cards", cards(KEYS)))}
    for name in QUERIES:
        topics = JSON_INPUTS[name]
        arrived = [blob for topic in topics for blob in filled[topic]]
        for title, make in ((SQL, in_sql), (DSL, in_streams)):
            kept.add(name, title, records / min(seconds(make(name), topics, arrived) for _ in range(TIMES)))
    if keep:
        sql_page.write()


if __name__ == "__main__":
    typer.run(main)

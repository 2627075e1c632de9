"""The workloads of `benchmarks.streams` on Spark: `WORKLOAD ID SERVERS FOLDER CACHE`, until stdin ends."""

import sys
from typing import Any

from moldau.streams import KafkaStreams, Long, StreamsBuilder, String, TimeWindows

TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}


def words(b: StreamsBuilder) -> None:
    lines = b.stream("lines").flat_map_values(str.split)
    grouped = lines.group_by(lambda key, word: word, key=String(), value=String())
    grouped.count(store="counts").to_stream().to("out", value=Long())


def windows(b: StreamsBuilder) -> None:
    windowed = b.stream("events").group_by_key().windowed_by(TimeWindows.of("1 minute", grace="1 minute"))
    windowed.count(store="counts").to_stream().to("out", value=Long())


def stream_table(b: StreamsBuilder) -> None:
    b.stream("events").join(b.table("table"), lambda event, row: event + row).to("out")


def table_table(b: StreamsBuilder) -> None:
    b.table("events").join(b.table("table"), lambda event, row: event + row).to_stream().to("out")


def keyed(b: StreamsBuilder) -> None:
    b.stream("events").group_by_key().reduce(lambda one, other: other, store="latest").to_stream().to("out")


BATCHES = {"words": 50_000}  # lines, of ten words each; of other workloads the default
WORKLOADS: dict[str, Any] = {
    "words": words,
    "windows": windows,
    "stream-table": stream_table,
    "table-table": table_table,
    "keyed": keyed,
}


def main(workload: str, identity: str, servers: str, folder: str, cache: str) -> None:
    settings = {**TEXTS, "statestore.cache.max.bytes": cache}
    builder = StreamsBuilder(identity, settings)
    WORKLOADS[workload](builder)
    own: dict[str, Any] = {"bootstrap.servers": servers, "state.dir": folder, "spark.master": "local[2]"}
    if workload in BATCHES:
        own["spark.maxOffsetsPerTrigger"] = BATCHES[workload]
    with KafkaStreams(builder, own) as app:
        app.start()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

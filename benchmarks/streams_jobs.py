"""The workloads of `benchmarks.streams` and `benchmarks.sql_spark` on Spark, until stdin ends:
`WORKLOAD ID SERVERS FOLDER CACHE`.
"""

import sys
from typing import Any

from moldau.streams import Json, KafkaStreams, Long, StreamsBuilder, String, TimeWindows

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


def json_filter(b: StreamsBuilder) -> None:
    large = b.stream("pays", value=Json()).filter(lambda card, pay: pay["amount"] > 50)
    large.map_values(lambda pay: {"SHOP": pay["shop"].upper(), "TWICE": pay["amount"] * 2}).to("out", value=Json())


def json_group(b: StreamsBuilder) -> None:
    def add(card: str, pay: Any, spent: Any) -> Any:
        return {"N": spent["N"] + 1, "TOTAL": spent["TOTAL"] + pay["amount"]}

    grouped = b.stream("pays", value=Json()).group_by_key()
    spent = grouped.aggregate(lambda: {"N": 0, "TOTAL": 0}, add, store="spent", value=Json())
    spent.to_stream().to("out", value=Json())


def json_window(b: StreamsBuilder) -> None:
    grouped = b.stream("pays", value=Json()).group_by_key()
    counts = grouped.windowed_by(TimeWindows.of("1 minute", grace="1 minute")).count(store="counts")
    counts.to_stream().map_values(lambda count: {"N": count}).to("out", value=Json())


def json_join(b: StreamsBuilder) -> None:
    def joined(pay: Any, card: Any) -> Any:
        return {"AMOUNT": pay["amount"], "SHOP": pay["shop"], "TOWN": card["town"]}

    b.stream("pays", value=Json()).join(b.table("cards", value=Json()), joined).to("out", value=Json())


BATCHES = {"words": 50_000}  # lines, of ten words each; of other workloads the default
WORKLOADS: dict[str, Any] = {
    "words": words,
    "windows": windows,
    "stream-table": stream_table,
    "table-table": table_table,
    "keyed": keyed,
    "filter": json_filter,
    "group": json_group,
    "window": json_window,
    "join": json_join,
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

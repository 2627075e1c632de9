"""`python -m benchmarks.serdes`: Avro, JSON and Protobuf to and from Arrow, beside the same values one by one.

Needs no broker: the registry is confluent-kafka's in memory. Writes docs/benchmarks-serdes.md.
"""

import datetime
import importlib.metadata
import io
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import fastavro
import pyarrow as pa
import typer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import SerializationContext
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.places import PROJECT
from benchmarks.report import field_of
from moldau.serdes.arrow.converters import columns
from moldau.serdes.context import Context
from moldau.serdes.protobuf import file_of, named
from moldau.serdes.registry import Registry, Schema

PAGE = PROJECT / "docs" / "benchmarks-serdes.md"
HERE, THERE = Context("orders"), SerializationContext("orders", "value")
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "item", "type": ["null", "string"], "default": None},
        {"name": "quantity", "type": "int"},
        {"name": "price", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD", "LOST"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "place",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Place",
                    "fields": [{"name": "lat", "type": "float"}, {"name": "lon", "type": "float"}],
                },
            ],
            "default": None,
        },
    ],
}
POINT = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "user": {"type": "string"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
PROTO = """syntax = "proto3";
message Order {
  int64 id = 1; string user = 2; optional string item = 3; int32 quantity = 4; double price = 5; bool paid = 6;
  int64 at = 7; Kind kind = 8; repeated string tags = 9; Place place = 10;
  enum Kind { NEW = 0; OLD = 1; LOST = 2; }
  message Place { float lat = 1; float lon = 2; }
}
"""


@dataclass(frozen=True, slots=True)
class Contender:
    title: str
    run: Callable[[int], Any]  # with so many rows
    rows: int


@dataclass(slots=True)
class Row:
    title: str
    contenders: list[Contender]
    found: dict[str, list[float]] = field(default_factory=dict)  # rows a second

    def measure(self) -> None:
        for contender in self.contenders:
            began = time.process_time()
            contender.run(contender.rows)
            self.found.setdefault(contender.title, []).append(contender.rows / (time.process_time() - began))


def order(i: int) -> dict[str, Any]:
    at = datetime.datetime.fromtimestamp(1_700_000_000 + i, datetime.UTC)
    return {
        "id": i * 1000,
        "user": f"user-{i % 1000}",
        "item": None if i % 5 == 0 else f"item-{i}",
        "quantity": i % 7,
        "price": i * 0.5,
        "paid": i % 2 == 0,
        "at": at,
        "kind": ("NEW", "OLD", "LOST")[i % 3],
        "tags": ["red", "large"][: i % 3],
        "place": None if i % 4 == 0 else {"lat": 50.1, "lon": 14.4},
    }


def fastavro_write(parsed: Any, orders: list[Any]) -> list[bytes]:
    out = []
    for one in orders:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, one)
        out.append(buffer.getvalue())
    return out


def avro_rows(count: int) -> Iterator[Row]:
    client = SchemaRegistryClient.new_client({"url": "mock://bench"})
    text, registry = json.dumps(ORDER), Registry(client)
    typed = columns("avro", registry, text)
    few = count // 10  # what goes one by one takes a tenth of the rows
    orders = [order(i) for i in range(count)]
    values = pa.array(orders, typed.type(HERE))
    framed = typed.from_arrow(values, HERE).values
    parsed = fastavro.parse_schema(ORDER)
    plain = [data[5:] for data in framed[:few].to_pylist()]
    whole = framed[:few].to_pylist()
    read, write = AvroDeserializer(client), AvroSerializer(client, text)
    yield Row(
        "Avro to Arrow",
        [
            Contender("confluent-kafka", lambda n: [read(data, THERE) for data in whole], few),
            Contender(
                "fastavro",
                lambda n: [fastavro.schemaless_reader(io.BytesIO(data), parsed, None) for data in plain],
                few,
            ),
            Contender("moldau", lambda n: typed.to_arrow(framed, HERE), count),
        ],
    )
    yield Row(
        "Arrow to Avro",
        [
            Contender("confluent-kafka", lambda n: [write(one, THERE) for one in orders[:few]], few),
            Contender("fastavro", lambda n: fastavro_write(parsed, orders[:few]), few),
            Contender("moldau", lambda n: typed.from_arrow(values, HERE), count),
        ],
    )


def json_rows(count: int) -> Iterator[Row]:
    client = SchemaRegistryClient.new_client({"url": "mock://bench-json"})
    text, few = json.dumps(POINT), count // 10
    typed = columns("json-schema", Registry(client), text)
    write, read = JSONSerializer(text, client), JSONDeserializer(text, schema_registry_client=client)
    keys = ("id", "user", "price", "tags")
    orders = [{key: one[key] for key in keys} for one in map(order, range(few))]
    framed = pa.array([write(one, THERE) for one in orders] * 10, pa.binary())
    whole = framed[:few].to_pylist()
    yield Row(
        "JSON to Arrow",
        [
            Contender("confluent-kafka", lambda n: [read(data, THERE) for data in whole], few),
            Contender("json.loads", lambda n: [json.loads(data[5:]) for data in whole], few),
            Contender("moldau", lambda n: typed.to_arrow(framed, HERE), len(framed)),
        ],
    )


def protobuf_rows(count: int) -> Iterator[Row]:
    client = SchemaRegistryClient.new_client({"url": "mock://bench-protobuf"})
    few = count // 10
    kind: Any = GetMessageClass(named(file_of(Schema("PROTOBUF", PROTO)), None))
    typed = columns("protobuf", Registry(client), PROTO)
    messages = [json_format.ParseDict(as_proto(order(at)), kind()) for at in range(few)]
    write, read = ProtobufSerializer(kind, client), ProtobufDeserializer(kind, schema_registry_client=client)
    whole = [write(one, THERE) for one in messages]
    framed = pa.array(whole * 10, pa.binary())
    values = typed.to_arrow(framed, HERE).values
    yield Row(
        "Protobuf to Arrow",
        [
            Contender("confluent-kafka, messages", lambda n: [read(data, THERE) for data in whole], few),
            Contender(
                "Google's parser, dicts",
                lambda n: [json_format.MessageToDict(kind.FromString(d[6:])) for d in whole],
                few,
            ),
            Contender("moldau", lambda n: typed.to_arrow(framed, HERE), len(framed)),
        ],
    )
    yield Row(
        "Arrow to Protobuf",
        [
            Contender("confluent-kafka, messages", lambda n: [write(one, THERE) for one in messages], few),
            Contender("moldau", lambda n: typed.from_arrow(values, HERE), len(framed)),
        ],
    )


def as_proto(one: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in one.items() if value is not None}
    return {**kept, "at": int(one["at"].timestamp() * 1000)}


def figures(row: Row) -> Iterator[tuple[str, str, str]]:
    own = statistics.median(row.found["moldau"])
    for title, found in row.found.items():
        median = statistics.median(found)
        spread = f"{min(found) / 1e3:,.0f}–{max(found) / 1e3:,.0f}"
        yield title, f"{median / 1e3:,.0f} ({spread})", f"{own / median:.1f}" if title != "moldau" else ""


def machine() -> str:
    cores = f"{os.cpu_count()} cores, {field_of('/proc/cpuinfo', 'model name')}"
    libraries = ("confluent-kafka", "fastavro", "numba", "pyarrow")
    versions = (f"{name} {importlib.metadata.version(name)}" for name in libraries)
    return ", ".join((cores, f"Python {platform.python_version()}", *versions)) + "."


METHOD = """\
Thousands of rows a second of processor time, one core; the median of the runs, and their range. Runs alternate. An
order has ten fields: long, two strings of which one may be null, int, double, boolean, timestamp, enum, an array of
up to two strings, and a record of two floats that may be null. A JSON order has four of them. confluent-kafka and
fastavro make one Python dict a row (of Protobuf, one message), Moldau columns of a batch of {rows:,} rows, frames and
look-up of the schema included. `times` is Moldau's rate beside the other's. numba compiles once for all schemas, about
ten seconds, and keeps what it has compiled; that is not counted. `python -m benchmarks.serdes` makes this page.
"""


def page(rows: list[Row], count: int) -> str:
    lines = ["# Benchmarks: serdes", "", machine(), "", "| what | by | k rows/s | times |", "|---|---|---:|---:|"]
    for row in rows:
        for number, (title, rate, ratio) in enumerate(figures(row)):
            lines.append(f"| {row.title if number == 0 else ''} | {title} | {rate} | {ratio} |")
    return "\n".join([*lines, "", METHOD.format(rows=count)])


def main(
    rows: Annotated[int, typer.Option(help="Rows of a batch.", min=100)] = 200_000,
    runs: Annotated[int, typer.Option(min=1)] = 5,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-serdes.md.")] = True,
) -> None:
    """Measure batches to and from Arrow beside values one by one."""
    console = Console()
    made = [*avro_rows(rows), *json_rows(rows), *protobuf_rows(rows)]
    for row in made:
        row.measure()  # a rehearsal: numba compiles, caches fill
        row.found.clear()
    for _ in track(range(runs), "runs", console=console):
        for row in made:
            row.measure()
    table = Table("what", "by", "k rows/s", "times")
    for row in made:
        for title, rate, ratio in figures(row):
            table.add_row(row.title, title, rate, ratio)
    console.print(table)
    if keep:
        PAGE.write_text(page(made, rows))


if __name__ == "__main__":
    typer.run(main)

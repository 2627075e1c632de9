"""Datagen: made-up records, for trying things out, under the settings of Confluent's Datagen connector.

`quickstart` names one of the shapes in `datagen.txt`; `schema.string` or `schema.filename` gives an Avro schema of
one's own. A record is made of the seed, the task and its number alone, so that a task that goes on at number n makes
what it would have made anyway: with exactly-once nothing is lost or doubled.
"""

from __future__ import annotations

import json
import pkgutil
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.data import Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition

MOST_A_POLL = 500
LONGEST_WAIT_S = 0.5
NAMESPACE = "datagen"


@cache
def shapes() -> dict[str, dict[str, str]]:
    """Return the shapes by name: a field's name and what it is made of. The first field is the key."""
    text = (pkgutil.get_data(__package__ or "", "datagen.txt") or b"").decode()
    found: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            fields = found[line[1:-1]] = {}
        elif line and not line.startswith("#"):
            name, _, made_of = line.partition(" ")
            fields[name] = made_of.strip()
    return found


def a_quickstart(name: str, value: Any) -> None:
    if value and value.lower() not in shapes():
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: it must be one of {', '.join(sorted(shapes()))}"
        )


class Datagen:
    """A source of made-up records."""

    kind = SOURCE
    task_class = "io.confluent.kafka.connect.datagen.DatagenTask"
    exactly_once = True
    config = ConfigDef(
        [
            Key("kafka.topic", importance=Importance.HIGH, doc="The topic that gets the records."),
            Key(
                "quickstart",
                default="",
                importance=Importance.HIGH,
                doc="The shape of the records.",
                validator=a_quickstart,
            ),
            Key("schema.string", default="", importance=Importance.HIGH, doc="An Avro schema instead."),
            Key("schema.filename", default="", importance=Importance.HIGH, doc="A file with an Avro schema instead."),
            Key("schema.keyfield", default="", importance=Importance.HIGH, doc="The field that becomes the key."),
            Key("max.interval", Kind.LONG, 500, Importance.HIGH, "The longest pause between two records, in ms."),
            Key("iterations", Kind.LONG, -1, Importance.HIGH, "How many records a task makes; -1 without end."),
            Key("random.seed", Kind.LONG, None, Importance.LOW, "The seed; without one it is made of the name."),
            Key("generate.timeout", Kind.LONG, -1, Importance.LOW, "No effect: records are made at once."),
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        seed = config.get("random.seed") or str(crc32(config.get("name", "").encode()))
        return [{**config, "random.seed": seed, "task.id": str(number)} for number in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if offset is not None and not isinstance(offset.get("current_iteration"), int):
            raise ConnectError('An offset of Datagen is the number of the next record: {"current_iteration": 17}')

    def open(self, context: SourceContext) -> Maker:
        return Maker(context)


class Maker:
    """A task: a generator of records, numbered from the last one that was committed."""

    def __init__(self, context: SourceContext) -> None:
        config = Datagen.config.parse(context.config)
        self._context, self._topic = context, config["kafka.topic"]
        self._seed, self._task = config["random.seed"] or 0, int(context.config.get("task.id", 0))
        self._shape = shape_of(config)
        self._keyfield = config["schema.keyfield"] or ("" if config["schema.string"] else self._shape.first)
        self._interval_s, self._iterations = max(0, config["max.interval"]) / 1000, config["iterations"]
        self._partition = {"task.id": self._task}
        stored = context.offset(self._partition) or {}
        self._next = int(stored.get("current_iteration", 0))

    def poll(self) -> Sequence[Record]:
        most = MOST_A_POLL if self._iterations < 0 else min(MOST_A_POLL, self._iterations - self._next)
        if most <= 0:
            self._context.wait(LONGEST_WAIT_S)
            return ()
        if self._interval_s <= 0:
            return [self._make() for _ in range(most)]
        until, records = time.monotonic() + LONGEST_WAIT_S, []
        while len(records) < most:
            dice = random.Random(f"{self._seed}-{self._task}-{self._next}-pause")
            if self._context.wait(dice.uniform(0, self._interval_s)):
                break
            records.append(self._make())
            if time.monotonic() >= until:
                break
        return records

    def _make(self) -> Record:
        dice = random.Random(f"{self._seed}-{self._task}-{self._next}")
        value = self._shape.make(dice, self._next)
        self._next += 1
        struct = Struct.of(self._shape.schema, value)
        field = self._shape.schema.by_name.get(self._keyfield) if self._keyfield else None
        return Record(
            self._topic,
            key_schema=field.schema if field else None,
            key=value[self._keyfield] if field else None,
            value_schema=self._shape.schema,
            value=struct,
            timestamp=time.time_ns() // 1_000_000,
            source_partition=self._partition,
            source_offset={"current_iteration": self._next},
        )

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """The schema of records, and how the fields of one are made from dice and its number."""

    schema: Schema
    makers: Mapping[str, Callable[[random.Random, int], Any]]

    @property
    def first(self) -> str:
        return self.schema.fields[0].name

    def make(self, dice: random.Random, number: int) -> dict[str, Any]:
        return {name: make(dice, number) for name, make in self.makers.items()}


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Return what the settings name; ConfigError if it is not exactly one thing."""
    given = [name for name in ("quickstart", "schema.string", "schema.filename") if config[name]]
    if len(given) != 1:
        raise ConfigError("Set exactly one of quickstart, schema.string and schema.filename.")
    if given == ["quickstart"]:
        return _quick(config["quickstart"].lower())
    text = config["schema.string"]
    if not text:
        try:
            with open(config["schema.filename"], encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise ConfigError(f"schema.filename cannot be read: {error.strerror or error}.") from None
    try:
        return _of_avro(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"The schema cannot be used: {error}.") from None


def _quick(name: str) -> Shape:
    parts = {field: maker(made_of) for field, made_of in shapes()[name].items()}
    schema = data.struct({field: schema for field, (schema, _) in parts.items()}, name=f"{NAMESPACE}.{name}")
    return Shape(schema, {field: make for field, (_, make) in parts.items()})


Made = tuple[Schema, Callable[[random.Random, int], Any]]


def maker(made_of: str) -> Made:
    """Read a row of datagen.txt: a kind, and what it takes."""
    kind, _, rest = made_of.partition(" ")
    words = rest.split()
    match kind:
        case "number":  # counts up
            first = int(words[0]) if words else 0
            return data.INT64, lambda _dice, number: first + number
        case "int" | "long":
            low, high = int(words[0]), int(words[1])
            return (data.INT32 if kind == "int" else data.INT64), lambda dice, _: dice.randint(low, high)
        case "double":
            least, most = float(words[0]), float(words[1])
            return data.FLOAT64, lambda dice, _: round(dice.uniform(least, most), 2)
        case "boolean":
            return data.BOOLEAN, lambda dice, _: dice.random() < 0.5
        case "time":  # in steps of so many ms from the first of 2024
            step = int(words[0])
            return data.INT64, lambda _dice, number: 1_704_067_200_000 + number * step
        case "one":
            return data.STRING, lambda dice, _: dice.choice(words)
        case "id":  # a prefix and a number of a range
            prefix, low, high = words[0], int(words[1]), int(words[2])
            return data.STRING, lambda dice, _: f"{prefix}{dice.randint(low, high)}"
        case "ip":
            return data.STRING, lambda dice, _: ".".join(str(dice.randint(1, 254)) for _ in range(4))
        case "list":
            most = int(words[0])
            inner, make = maker(" ".join(words[1:]))
            return data.array(inner), lambda dice, n: [make(dice, n) for _ in range(dice.randint(1, most))]
        case "struct":  # names and words, joined by /
            pairs = [pair.split("/") for pair in words]
            parts = {name: maker(f"one {' '.join(choices)}") for name, *choices in pairs}
            schema = data.struct({name: one for name, (one, _) in parts.items()})
            return schema, lambda dice, n: Struct.of(schema, {name: make(dice, n) for name, (_, make) in parts.items()})
    raise ConfigError(f"datagen.txt: there is no kind {kind}.")


PRIMITIVE: dict[str, Made] = {
    "int": (data.INT32, lambda dice, _: dice.randint(0, 1000)),
    "long": (data.INT64, lambda dice, _: dice.randint(0, 1_000_000)),
    "float": (data.FLOAT32, lambda dice, _: float(dice.randint(0, 1000))),
    "double": (data.FLOAT64, lambda dice, _: round(dice.uniform(0, 1000), 3)),
    "boolean": (data.BOOLEAN, lambda dice, _: dice.random() < 0.5),
    "string": (data.STRING, lambda dice, _: "".join(dice.choice("abcdefghijklmnop") for _ in range(8))),
    "bytes": (data.BYTES, lambda dice, _: dice.randbytes(8)),
}


def _of_avro(document: Any) -> Shape:
    schema, _ = avro_maker(document)
    if schema.type is not Type.STRUCT:
        raise ValueError("it must be a record")
    fields = {one["name"]: avro_maker(one["type"]) for one in document["fields"]}
    return Shape(schema, {name: maker for name, (_, maker) in fields.items()})


def avro_maker(document: Any) -> Made:
    """Make random values of an Avro schema; `arg.properties` may have `options`, `range` and `iteration`."""
    if isinstance(document, list):
        return avro_maker(next(one for one in document if one != "null"))
    if isinstance(document, str):
        if document not in PRIMITIVE:
            raise ValueError(f"{document} is not a type")
        return PRIMITIVE[document]
    kind, hints = document["type"], document.get("arg.properties", {})
    if isinstance(kind, dict | list):
        return avro_maker(kind)
    match kind:
        case "record":
            parts = {one["name"]: avro_maker(one["type"]) for one in document["fields"]}
            named = document.get("namespace", "") + "." if document.get("namespace") else ""
            made = data.struct({name: one for name, (one, _) in parts.items()}, name=named + document["name"])
            return made, lambda dice, n: Struct.of(made, {name: make(dice, n) for name, (_, make) in parts.items()})
        case "array":
            inner, make = avro_maker(document["items"])
            return data.array(inner), lambda dice, n: [make(dice, n) for _ in range(dice.randint(1, 4))]
        case "map":
            inner, make = avro_maker(document["values"])
            many = data.map_of(data.STRING, inner)
            return many, lambda dice, n: {f"key{at}": make(dice, n) for at in range(dice.randint(1, 4))}
        case "enum":
            symbols = list(document["symbols"])
            return data.STRING, lambda dice, _: dice.choice(symbols)
    return _hinted(avro_maker(kind), hints)


def _hinted(made: Made, hints: Mapping[str, Any]) -> Made:
    schema, make = made
    if "iteration" in hints:
        start, step = int(hints["iteration"].get("start", 0)), int(hints["iteration"].get("step", 1))
        return schema, lambda _dice, number: start + number * step
    if isinstance(hints.get("options"), list):
        return schema, lambda dice, _: dice.choice(hints["options"])
    if "range" in hints:
        low, high = hints["range"].get("min", 0), hints["range"].get("max", 1000)
        whole = schema.type in data.BITS
        return schema, lambda dice, _: dice.randint(int(low), int(high)) if whole else dice.uniform(low, high)
    return schema, make

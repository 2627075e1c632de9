"""Options of typed keys and values: their format and schema, and how to handle records that do not decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.serdes.primitive import PLAIN
from moldau.spark.options import Option, OptionError, boolean, one_of, under, words

WITH_REGISTRY = ("avro", "json-schema", "protobuf")  # serdes.formats has them too, but is slow to import
VARIANT = "variant"
FORMATS = (*PLAIN, *WITH_REGISTRY, VARIANT)
REGISTRY = "schema.registry."
FIELDS = ("key", "value")
DEAD_LETTERS = "errors.deadletterqueue.topic.name"


def _rows(field: str) -> tuple[Option, ...]:
    return (
        Option(
            f"{field}.format",
            one_of(*FORMATS),
            None,
            f"What the {field} is: {', '.join(f'`{name}`' for name in FORMATS)}. Not set: bytes as they are. Formats "
            "with a schema need `schema.registry.url`, and the column has the fields of the schema. With `variant` "
            "each record is read by its own schema, of any format, and the column has Spark's type VARIANT.",
        ),
        Option(
            f"{field}.schema",
            words,
            None,
            f"The schema to read the {field} with; not set: the latest one of the subject when the query starts. For "
            "`json`, a JSON Schema that makes columns of the text.",
        ),
        Option(f"{field}.message", words, None, "Protobuf: which message of the schema; not set: the first one."),
        Option(
            f"{field}.subject.name.strategy",
            one_of("topic", "record", "topic_record"),
            None,
            "The name of the subject: `TOPIC` (default), `RECORD`, `TOPIC_RECORD`.",
        ),
    )


TYPED = (
    *_rows("key"),
    *_rows("value"),
    Option(
        "mode",
        one_of("permissive", "dropmalformed", "failfast"),
        None,
        "What becomes of records that do not decode: null (`permissive`), left out (`dropmalformed`), or the query "
        "fails (`failfast`, the default without dead letters; with them it is `dropmalformed`).",
    ),
    Option(
        "columnNameOfCorruptRecord",
        words,
        None,
        "With `permissive`: a column for the bytes of values that do not decode.",
    ),
    Option(DEAD_LETTERS, words, None, "A topic that gets the records that do not decode."),
    Option(
        "errors.deadletterqueue.context.headers.enable",
        boolean,
        True,
        "Whether they get headers that say where they come from and what is wrong, named as those of Kafka Connect.",
    ),
)


@dataclass(frozen=True, slots=True)
class Field:
    """The format of a key or a value."""

    name: str
    format: str
    schema: str | None
    message: str | None
    strategy: str | None


@dataclass(frozen=True, slots=True)
class Typed:
    """Which columns are typed, and how wrong records are handled."""

    fields: tuple[Field, ...]
    mode: str
    corrupt_column: str | None
    dead_letters: str | None
    context_headers: bool
    registry: Mapping[str, str]


def typed(values: Mapping[str, Any], given: Mapping[str, str]) -> Typed:
    fields = tuple(_field(name, values) for name in FIELDS if values[f"{name}.format"] is not None)
    registry, letters, mode = under(given, REGISTRY), values[DEAD_LETTERS], values["mode"]
    for field in fields:
        if field.format in (*WITH_REGISTRY, VARIANT) and not registry.get("url"):
            where = f"set {REGISTRY}url, for example to http://localhost:8081"
            raise OptionError(
                f"The option {field.name}.format is {field.format}, which needs a schema registry: {where}."
            )
    for name in FIELDS:
        if values[f"{name}.format"] is None and values[f"{name}.schema"] is not None:
            raise OptionError(f"The option {name}.schema is set without {name}.format.")
    if letters and mode == "failfast":
        raise OptionError(
            f"With {DEAD_LETTERS} the mode cannot be failfast: such records go there and the query goes on."
        )
    corrupt = values["columnNameOfCorruptRecord"]
    if corrupt and mode != "permissive":
        raise OptionError("The option columnNameOfCorruptRecord has a meaning only if mode is permissive.")
    mode = mode or ("dropmalformed" if letters else "failfast")
    return Typed(fields, mode, corrupt, letters, values["errors.deadletterqueue.context.headers.enable"], registry)


def _field(name: str, values: Mapping[str, Any]) -> Field:
    strategy = values[f"{name}.subject.name.strategy"]
    chosen = strategy.upper() if strategy else None
    return Field(name, values[f"{name}.format"], values[f"{name}.schema"], values[f"{name}.message"], chosen)

"""The columns that the sink takes, checked by the schema of a data frame before a task begins."""

from __future__ import annotations

from typing import Any

from moldau.spark.options import OptionError
from moldau.spark.sink.options import RAW, SinkOptions

RESERVED = ("topic", "key", "partition", "headers", "timestamp")
BYTES = ("string", "binary")
TYPES = {"topic": ("string",), "partition": ("integer",), "timestamp": ("timestamp", "timestamp_ntz")}
HEADERS = "array<struct<key:string,value:binary>>"


def check_schema(schema: Any, options: SinkOptions) -> None:
    """Raise OptionError if a frame of this schema (a StructType) cannot be written."""
    fields = {field.name: field.dataType for field in schema.fields}
    if options.topic is None and "topic" not in fields:
        raise OptionError("The option topic must be set where there is no column topic.")
    raw = options.formats["value"] == RAW
    if raw and "value" not in fields:
        raise OptionError(
            f"There is no column value. The columns are {', '.join(fields)}: name one of them value, or set "
            f"value.format to write them all."
        )
    extra = [name for name in fields if name not in (*RESERVED, "value")]
    if extra and "value" in fields:
        raise OptionError(f"The sink has no use for the column {extra[0]}: it takes value, {', '.join(RESERVED)}.")
    if not raw and "value" not in fields and not extra:
        raise OptionError("There is no column to make a value of.")
    for name in ("key", "value"):
        if name in fields and options.formats[name] == RAW and fields[name].typeName() not in BYTES:
            raise OptionError(
                f"The column {name} is {fields[name].simpleString()}; it must be string or binary, or {name}.format "
                f"must say what to make of it."
            )
    for name, allowed in TYPES.items():
        if name in fields and fields[name].typeName() not in allowed:
            raise OptionError(f"The column {name} is {fields[name].simpleString()}; it must be {allowed[0]}.")
    if "headers" in fields and fields["headers"].simpleString() != HEADERS:
        raise OptionError(f"The column headers is {fields['headers'].simpleString()}; it must be {HEADERS}.")

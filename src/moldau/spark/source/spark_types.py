"""Converts Arrow types to those that Spark has: one unit of time, one kind of text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from moldau.serdes.context import SerdeError

SIMPLER = (
    (pa.types.is_time, pa.time64("ns")),
    (pa.types.is_duration, pa.duration("us")),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_large_string, pa.string()),
)
UNKNOWN_TO_SPARK = "read the bytes and convert them, or leave the field out of the schema that is read with"


def for_spark(type: Any, path: str = "") -> Any:
    """Return the type that Spark has for this one; SerdeError if it has none. (Decimals have a fixed size too.)"""
    if pa.types.is_decimal(type):
        if type.precision > 38:
            raise refused(path, f"{type.precision} digits, of which Spark has 38")
        return pa.decimal128(type.precision, type.scale)
    for is_such, simpler in SIMPLER:
        if is_such(type):
            return simpler
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", "UTC" if type.tz else None)
    if pa.types.is_dictionary(type):
        return for_spark(type.value_type, path)
    if pa.types.is_struct(type):
        return pa.struct([pa.field(one.name, for_spark(one.type, f"{path}.{one.name}")) for one in type])
    if pa.types.is_map(type):
        key, item = for_spark(type.key_type, f"{path}.key"), for_spark(type.item_type, f"{path}.value")
        return pa.map_(key, pa.field("value", item))
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(pa.field("element", for_spark(type.value_type, f"{path}.element")))
    if pa.types.is_interval(type):
        raise refused(path, "an interval of months, days and nanoseconds, for which Spark has no type")
    return type


def refused(path: str, what: str) -> SerdeError:
    return SerdeError(f"the field {path.lstrip('.')} has {what}: {UNKNOWN_TO_SPARK}")

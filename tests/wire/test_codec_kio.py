"""The codec against kio, an independent library that has a class for each version of a message.

What we write, kio reads to the same values; what kio writes of them, we read to the same values.
"""

from __future__ import annotations

import datetime
import io
import pkgutil
import re
from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from moldau.wire import messages as m
from moldau.wire import schema
from moldau.wire.codec import decode, encode
from tests.wire.message_values import EVERY, QUICK, ids, message

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


def kio_path(name: str, version: int) -> str | None:
    """Where kio has its class of a version of a message, if it has one."""
    kind = schema.heads()[name][0].kind
    stem = name.removesuffix(kind.title()) if kind in ("request", "response") else name
    known = schema_name_map.get(re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower(), {}).get(version, {})
    return known.get(EntityType[kind]) if kind in EntityType.__members__ else None


CASES = [case for case in EVERY if kio_path(*case) is not None]


def kio_class(name: str, version: int) -> type[Any]:
    return pkgutil.resolve_name(kio_path(name, version) or "")


def agree(theirs: Any, ours: Any, version: int) -> bool:
    """Whether two values mean the same; kio has None for an instant of -1 and for an id of zeros."""
    if theirs is None:
        return ours in (None, -1, bytes(16))
    if hasattr(ours, "SCHEMA"):
        return all(agree(a, b, version) for a, b in zip(values(theirs), values(ours, version), strict=True))
    if isinstance(theirs, tuple):
        return len(theirs) == len(ours) and all(agree(a, b, version) for a, b in zip(theirs, ours, strict=True))
    return bool(number(theirs) == ours)


def values(struct: Any, version: int | None = None) -> list[Any]:
    """The fields of a struct in their order; of ours, those that the version has."""
    if version is None:
        return [getattr(struct, f.name) for f in fields(struct)]
    here = [f for f in struct.SCHEMA.fields if f.at(version)]
    return [filled(f, getattr(struct, f.name)) for f in here]


def filled(field: schema.Field, value: Any) -> Any:
    """None in the place of a struct that is not nullable stands for the struct of defaults."""
    if value is None and field.struct is not None and field.nullable is None and not field.is_array:
        return getattr(m, field.struct.name)()
    return value


def number(value: Any) -> Any:
    match value:
        case datetime.timedelta():
            return value // MILLISECOND
        case datetime.datetime():
            return (value - EPOCH) // MILLISECOND
        case UUID():
            return value.bytes
        case _:
            return value


def test_all_that_kio_has_is_compared() -> None:
    known = {
        path for of_version in schema_name_map.values() for kinds in of_version.values() for path in kinds.values()
    }
    assert {kio_path(*case) for case in CASES} == known


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_kio_reads_what_we_write_and_we_read_what_it_writes(case: tuple[str, int]) -> None:
    name, version = case
    theirs = kio_class(name, version)
    read, write = entity_reader(theirs), entity_writer(theirs)

    @QUICK
    @given(message(name, version))
    def check(value: Any) -> None:
        data = encode(value, version)
        entity, size = read(data, 0)
        assert size == len(data)
        assert agree(entity, value, version), entity
        buffer = io.BytesIO()
        write(buffer, entity)
        assert decode(type(value), version, buffer.getvalue()) == decode(type(value), version, data)

    check()

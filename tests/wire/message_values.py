"""Hypothesis strategies for messages, made from the table: any value that a version of a message can carry."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from moldau.wire import messages, schema
from moldau.wire.schema import Field, Message, Struct

# Few and the same each time: there are seven hundred versions of messages to go through.
QUICK = settings(
    max_examples=4,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in BITS.items()},
    "uint16": st.integers(0, 0xFFFF),
    "uint32": st.integers(0, 0xFFFFFFFF),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=8) | st.sampled_from(["x" * 126, "é" * 64, "x" * 128, "x" * 0x7FFF]),
    "bytes": st.binary(max_size=8) | st.sampled_from([bytes(127), bytes(20_000)]),
    "records": st.binary(max_size=8) | st.just(bytes(300)),
}

EVERY = [
    (name, version)
    for name, (head, _) in schema.heads().items()
    for version in range(head.versions[0], head.versions[1] + 1)
]


def ids(case: tuple[str, int]) -> str:
    return f"{case[0]}-v{case[1]}"


@cache
def message(name: str, version: int) -> st.SearchStrategy[Any]:
    """Messages that may differ from the default in each field that the version has, and in no other."""
    messages.message(name)
    return _struct(schema.message(name), version)


def _struct(owner: Message | Struct, version: int) -> st.SearchStrategy[Any]:
    here = {field.name: _value(field, version) for field in owner.fields if field.at(version)}
    return st.builds(getattr(messages, owner.name), **here)


def _value(field: Field, version: int) -> st.SearchStrategy[Any]:
    one = SCALARS[field.item] if field.struct is None else _struct(field.struct, version)
    if field.name.endswith("error_code"):
        one = st.integers(-1, 133)
    if field.type == "int64" and field.name.endswith(("_ms", "timestamp")):
        one = st.integers(-1, 1 << 42)  # kio makes instants and durations of these
    some = st.lists(one, max_size=2) if field.is_array else one
    if field.tag is not None:
        some = st.just(field.default) | some
    return st.none() | some if field.nullable_at(version) else some


def full(owner: Message | Struct, version: int) -> Any:
    """One message with something in each field that the version has, and two elements in each array."""
    here = {field.name: _something(field, version) for field in owner.fields if field.at(version)}
    return getattr(messages, owner.name)(**here)


def _something(field: Field, version: int) -> Any:
    kinds = {"string": "text", "bytes": b"bytes", "records": b"records", "uuid": b"u" * 16, "bool": True}
    one = kinds.get(field.item, 7) if field.struct is None else full(field.struct, version)
    return [one, one] if field.is_array else one

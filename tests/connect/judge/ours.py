"""What Moldau makes of the judge's requests, in the form of the judge's answers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.connect import chain
from moldau.connect.converters import make_converter
from moldau.connect.data import Record, Schema
from moldau.connect.errors import ArgumentError, ConfigError, ConnectError, java_name
from tests.connect.judge import coding

EXPECTED = (ConnectError, ConfigError, ArgumentError)


def answer(op: str, name: str, config: Mapping[str, str], items: list[Any]) -> Any:
    """Answer for each item, or once if the settings are refused. Items are records, (schema, value) pairs or bytes."""
    try:
        step = _step(op, name, config)
    except EXPECTED as error:
        return {"refused": java_name(error), "message": str(error)}
    return [_answer(step, item) for item in items]


def _answer(step: Callable[[Any], dict[str, Any]], item: Any) -> dict[str, Any]:
    try:
        return step(item)
    except EXPECTED as error:
        return {"error": java_name(error), "message": str(error)}


def _step(op: str, name: str, config: Mapping[str, str]) -> Callable[[Any], dict[str, Any]]:
    match op:
        case "transform":
            transform = chain.make_transform(name, config)
            return _both_ways(lambda record: chain.results(transform(record)), alone(name, config))
        case "predicate":
            predicate = chain.make_predicate(name, config)
            return lambda record: {"is": predicate(record)}
        case "chain":
            return _both_ways(chain.make_chain(config), config)
    kind = "header" if name.endswith("SimpleHeaderConverter") else "value"
    converter = make_converter(name, kind, config)
    if op == "write":
        return lambda pair: _written(converter.write("t", *pair))
    return lambda found: _read(converter.read("t", found))


def alone(name: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a chain with this transform alone."""
    return {"transforms": "one", "transforms.one.type": name, **{f"transforms.one.{k}": v for k, v in config.items()}}


def _both_ways(
    steps: Callable[[Record], Sequence[Record]], config: Mapping[str, str]
) -> Callable[[Record], dict[str, Any]]:
    """Answer what the steps make of a record; where the chain as one function serves it too, that must be the same."""
    straight = chain.make_straight(chain.make_links(config), seen_before=0)

    def answer(record: Record) -> dict[str, Any]:
        short = straight and straight(record)
        try:
            found = _made(steps(record))
        except Exception as error:
            assert short is None, f"{config} does not refuse {record}: {error}"
            raise
        assert short is None or coding.record(short) == found, f"{config} makes {short} of {record}, not {found}"
        return found

    return answer


def _made(records: Any) -> dict[str, Any]:
    record: Record | None = next(iter(records), None)
    return {"dropped": True} if record is None else coding.record(record)


def _written(found: bytes | None) -> dict[str, Any]:
    return {"bytes": None if found is None else base64.b64encode(found).decode()}


def _read(found: Any) -> dict[str, Any]:
    schema: Schema | None = found.schema
    return {"schema": coding.schema(schema), "value": coding.value(schema, found.value)}

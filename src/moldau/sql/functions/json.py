"""Functions of JSON texts. Numbers keep their spelling."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from moldau.java.numbers import decimal_text, double_text, plain_text

from ..casts import date_text, java_text, time_text, timestamp_text
from ..tree import ArrayType, DecimalType, MapType, Primitive, StructType, Type
from .registry import scalar

MISSING = object()
_CONTROL = re.compile(r"[\x00-\x1f\"\\]")


class Spelled(float):
    """A number as Java writes it after it was read: with all its digits, the exponent as BigDecimal has it."""

    exact: Decimal

    def __new__(cls, text: str) -> Spelled:
        made = super().__new__(cls, text)
        made.exact = Decimal(text)
        return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_float=Spelled, parse_constant=_no_constant)
_BLANKS = " \t\r\n"


def parse(text: str) -> Any:
    """Read the first JSON value of a text, as Jackson does; what follows it does not count. A ValueError if none."""
    value, end = _DECODER.raw_decode(text.lstrip(_BLANKS))
    rest = text.lstrip(_BLANKS)[end : end + 1]
    if rest and rest not in _BLANKS and not isinstance(value, dict | list | str):
        raise ValueError(f"Invalid JSON format: {text}")  # a number or a word that goes on
    return value


def dump(value: Any, number: Callable[[Decimal], str] = decimal_text) -> str:
    """Write a value without blanks."""
    match value:
        case dict():
            return "{" + ",".join(f"{_quoted(key)}:{dump(each, number)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(dump(each, number) for each in value) + "]"
        case Spelled():
            return number(value.exact)
        case str():
            return _quoted(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def text_of(value: Any) -> str:
    """Return a value as EXTRACTJSONFIELD and JSON_RECORDS give it: strings bare, all else as JSON."""
    return value if isinstance(value, str) else dump(value)


_STEP = re.compile(r"\.([A-Za-z_@][\w@:-]*|\d+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]|\.\"([^\"]*)\"")


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise ValueError(f"Invalid JSON path: {path}")
    at, found = 1, []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ValueError(f"Invalid JSON path: {path}")
        found.append(int(step[2]) if step[2] is not None else next(each for each in step.groups() if each is not None))
        at = step.end()
    return found


@scalar("extractjsonfield(STRING json, STRING path) -> STRING", doc="Returns the value at a path of a JSON text.")
def extractjsonfield(text: str, path: str) -> str | None:
    value = parse(text)
    for step in _steps(path):
        if isinstance(step, int):
            if not isinstance(value, list) or not 0 <= step < len(value):
                return None
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return None
    return text_of(value)


def _read(text: str) -> Any:
    try:
        return parse(text) if text.strip() else MISSING
    except ValueError:
        return MISSING


@scalar("is_json_string(STRING text) -> BOOLEAN", doc="Says whether a text is JSON.", takes_nulls=True)
def is_json_string(text: str | None) -> bool:
    return text is not None and _read(text) is not MISSING


@scalar(
    "json_array_contains(STRING json, T value) -> BOOLEAN",
    doc="Says whether a JSON array has a value.",
    takes_nulls=True,
)
def json_array_contains(text: str | None, value: Any) -> bool | None:
    """Decimals are never found, as in ksqlDB: a number of JSON with a point is a DOUBLE."""
    if text is None:
        return None
    array = _read(text)
    kind = Spelled if isinstance(value, float) else type(value)
    return isinstance(array, list) and any(type(each) is kind and each == value for each in array)


@scalar("json_array_length(STRING json) -> INTEGER", doc="Returns the length of a JSON array.")
def json_array_length(text: str) -> int | None:
    array = parse(text)
    return len(array) if isinstance(array, list) else None


@scalar("json_items(STRING json) -> ARRAY<STRING>", doc="Returns the elements of a JSON array as texts.")
def json_items(text: str) -> list[str] | None:
    array = parse(text)
    return [dump(each) for each in array] if isinstance(array, list) else None


@scalar("json_keys(STRING json) -> ARRAY<STRING>", doc="Returns the keys of a JSON object.")
def json_keys(text: str) -> list[str] | None:
    value = parse(text)
    return list(value) if isinstance(value, dict) else None


@scalar("json_records(STRING json) -> MAP<STRING, STRING>", doc="Returns a JSON object as a map of JSON texts.")
def json_records(text: str) -> dict[str, str] | None:
    value = parse(text)
    return {key: text_of(each) for key, each in value.items()} if isinstance(value, dict) else None


@scalar(
    "json_concat(STRING... texts) -> STRING",
    doc="Joins JSON texts: objects by keys, all else as arrays.",
    takes_nulls=True,
)
def json_concat(*texts: str | None) -> str | None:
    if not texts or None in texts:
        return None
    values = [_read(each) for each in texts if each is not None]
    if any(each is MISSING for each in values):
        return None
    if len(values) == 1:
        return dump(values[0], plain_text)
    if all(isinstance(each, dict) for each in values):
        return dump({key: value for each in values for key, value in each.items()}, plain_text)
    return dump([item for each in values for item in (each if isinstance(each, list) else [each])], plain_text)


def writer(type: Type | None) -> Callable[[Any], str]:
    """Return a function that writes values of a type as JSON."""
    match type:
        case ArrayType(item):
            of_item = writer(item)
            write: Callable[[Any], str] = lambda v: "[" + ",".join(map(of_item, v)) + "]"  # noqa: E731
        case MapType(key, value):
            of_value = writer(value)
            of_key = java_text(key)
            write = lambda v: _object(sorted((of_key(k), of_value(x)) for k, x in v.items()))  # noqa: E731
        case StructType(fields):
            parts = sorted((each.name, place, writer(each.type)) for place, each in enumerate(fields))
            write = lambda v: _object((n, w(v[at])) for n, at, w in parts)  # noqa: E731
        case DecimalType():
            write = plain_text
        case Primitive("BYTES"):
            write = lambda v: _quoted(base64.b64encode(v).decode())  # noqa: E731
        case Primitive("DATE" | "TIME" | "TIMESTAMP" as name):
            shown = {"DATE": date_text, "TIME": time_text, "TIMESTAMP": timestamp_text}[name]
            write = lambda v: _quoted(shown(v))  # noqa: E731
        case Primitive("STRING"):
            write = _quoted
        case Primitive("DOUBLE"):
            write = lambda v: double_text(v) if math.isfinite(v) else _quoted(double_text(v))  # noqa: E731
        case _:
            write = json.dumps
    return lambda v: "null" if v is None else write(v)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_quoted(name)}:{value}" for name, value in members) + "}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _quoted(text: str) -> str:
    """Write a text as Jackson does: control characters in upper-case hex."""
    return '"' + _CONTROL.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def _to_json(types: Sequence[Any]) -> Callable[..., Any]:
    return writer(types[0])


scalar("to_json_string(T value) -> STRING", doc="Writes any value as JSON.", takes_nulls=True, make=_to_json)(str)

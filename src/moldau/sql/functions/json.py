"""Functions of JSON texts. Numbers keep their spelling."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from moldau.java.numbers import plain_text

from ..casts import date_text, time_text, timestamp_text
from ..maps import items
from ..tree import ArrayType, DecimalType, MapType, Primitive, StructType, Type
from .registry import scalar

MISSING = object()


class Spelled(float):
    """A number as it was written."""

    text: str

    def __new__(cls, text: str) -> Spelled:
        made = super().__new__(cls, text)
        made.text = text
        return made


def parse(text: str) -> Any:
    """Read a JSON text; a ValueError if it is none."""
    return json.loads(text, parse_float=Spelled)


def dump(value: Any) -> str:
    """Write a value without blanks, numbers as they were read."""
    match value:
        case dict():
            return (
                "{"
                + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{dump(each)}" for key, each in value.items())
                + "}"
            )
        case list():
            return "[" + ",".join(map(dump, value)) + "]"
        case Spelled():
            return value.text
        case _:
            return json.dumps(value, ensure_ascii=False)


def text_of(value: Any) -> str | None:
    """Return a value as EXTRACTJSONFIELD and JSON_ITEMS give it: strings bare, all else as JSON."""
    if value is None:
        return None
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
        elif isinstance(value, dict):
            value = value.get(step)
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
def json_array_contains(text: str | None, value: Any) -> bool:
    array = MISSING if text is None else _read(text)
    if not isinstance(array, list):
        return False
    wanted = float(value) if isinstance(value, Decimal) else value
    return any(each == wanted and isinstance(each, bool) == isinstance(wanted, bool) for each in array)


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
def json_records(text: str) -> dict[str, str | None] | None:
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
        return dump(values[0])
    if all(isinstance(each, dict) for each in values):
        return dump({key: value for each in values for key, value in each.items()})
    return dump([item for each in values for item in (each if isinstance(each, list) else [each])])


def writer(type: Type | None) -> Callable[[Any], str]:
    """Return a function that writes values of a type as JSON."""
    match type:
        case ArrayType(item):
            of_item = writer(item)
            write: Callable[[Any], str] = lambda v: "[" + ",".join(map(of_item, v)) + "]"  # noqa: E731
        case MapType(_, value):
            of_value = writer(value)
            write = lambda v: "{" + ",".join(f"{_quoted(str(k))}:{of_value(x)}" for k, x in items(v)) + "}"  # noqa: E731
        case StructType(fields):
            parts = [(_quoted(each.name), writer(each.type)) for each in fields]
            write = lambda v: (  # noqa: E731
                "{" + ",".join(f"{n}:{w(x)}" for (n, w), x in zip(parts, v, strict=True)) + "}"
            )
        case DecimalType():
            write = plain_text
        case Primitive("BYTES"):
            write = lambda v: _quoted(base64.b64encode(v).decode())  # noqa: E731
        case Primitive("DATE" | "TIME" | "TIMESTAMP" as name):
            shown = {"DATE": date_text, "TIME": time_text, "TIMESTAMP": timestamp_text}[name]
            write = lambda v: _quoted(shown(v))  # noqa: E731
        case _:
            write = lambda v: json.dumps(v, ensure_ascii=False)  # noqa: E731
    return lambda v: "null" if v is None else write(v)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _to_json(types: Sequence[Any]) -> Callable[..., Any]:
    return writer(types[0])


scalar("to_json_string(T value) -> STRING", doc="Writes any value as JSON.", takes_nulls=True, make=_to_json)(str)

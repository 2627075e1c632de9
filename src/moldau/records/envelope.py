"""A record as a line of JSON, with kcat's names: topic, partition, offset, tstype, ts, headers, key, payload.

Bytes that are not UTF-8 are written in base64, and `key_encoding` or `payload_encoding` says so. What is written can be
read again: `moldau consume -J | moldau produce -J other` copies a topic.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring as _quoted
from typing import Any, NamedTuple

from moldau.admin.mistakes import Mistake
from moldau.wire.records import Headers, Record
from moldau.wire.records.quick import Row

BASE64 = "base64"
# Text, or what a format with a structure gives; and how it is encoded, if it is.
Shown = tuple[Any, str | None]
Show = Callable[[Record], Shown]


class Told(NamedTuple):
    """What an envelope says about a record to write; None where it says nothing."""

    key: Any
    value: Any
    headers: Headers
    partition: int | None
    timestamp: int | None


def written(topic: str, partition: int, record: Record, *, append_time: bool, key: Show, value: Show) -> dict[str, Any]:
    """Return the envelope of a record."""
    shown_key, key_encoding = key(record)
    shown_value, value_encoding = value(record)
    found: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "tstype": "logappend" if append_time else "create",
        "ts": record.timestamp,
        "headers": [text for name, data in record.headers for text in (_text(name), _header(data))],
        "key": shown_key,
        "payload": shown_value,
    }
    if key_encoding:
        found["key_encoding"] = key_encoding
    if value_encoding:
        found["payload_encoding"] = value_encoding
    return found


def plain_lines(topic: str, partition: int, rows: Iterable[Row], *, append_time: bool) -> bytes:
    """Write envelopes as `lines` of `written` does, without a call each; UnicodeDecodeError if one is not text."""
    head = f'{{"topic":{_quoted(topic)},"partition":{partition},"offset":'
    time = f',"tstype":"{"logappend" if append_time else "create"}","ts":'
    quoted = _quoted
    found = [
        f'{head}{o}{time}{t},"headers":{_pairs(h) if h else "[]"},"key":{"null" if k is None else quoted(k.decode())},'
        f'"payload":{"null" if v is None else quoted(v.decode())}}}\n'
        for o, t, k, v, h in rows
    ]
    return "".join(found).encode()


def _pairs(headers: Headers) -> str:
    return _dumps([text for name, data in headers for text in (_text(name), _header(data))])


def lines(envelopes: Iterable[dict[str, Any]]) -> bytes:
    return b"".join([_dumps(one).encode() + b"\n" for one in envelopes])


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def text_or_base64(data: bytes | None) -> Shown:
    """Return bytes as text, or in base64 if they are not UTF-8."""
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), BASE64


def _text(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _header(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def read(line: bytes, number: int) -> Told:
    """Read an envelope from a line; Mistake if it is not one."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise Mistake(f"Line {number} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise Mistake(f"Line {number} is no envelope: it must be an object with key, payload and headers.")
    partition, timestamp = found.get("partition"), found.get("ts")
    for name, one in (("partition", partition), ("ts", timestamp)):
        if one is not None and (not isinstance(one, int) or isinstance(one, bool) or one < 0):
            raise Mistake(f"Line {number}: {name} is {one!r}, not a number.")
    key = _decode(found, "key", number)
    value = _decode(found, "payload" if "payload" in found else "value", number)
    return Told(key, value, _headers(found.get("headers") or [], number), partition, timestamp)


def _decode(found: dict[str, Any], name: str, number: int) -> Any:
    value = found.get(name)
    if found.get(f"{name}_encoding") != BASE64 or value is None:
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Mistake(f"Line {number}: {name} is no base64.") from None


def _headers(given: Any, number: int) -> Headers:
    """Read a list of names and values in turn, as kcat has it, or an object."""
    flat = [part for pair in given.items() for part in pair] if isinstance(given, dict) else given
    if not isinstance(flat, list) or len(flat) % 2 or not all(isinstance(one, str) for one in flat[::2]):
        raise Mistake(f"Line {number}: headers are a list of names and values in turn, or an object.")
    values = [None if one is None else str(one).encode() for one in flat[1::2]]
    return tuple(zip(flat[::2], values, strict=True))

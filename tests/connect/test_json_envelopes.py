"""JsonConverter reads only the payload of an envelope that begins as the last one did: what comes out is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.connect.converters.json import JSON, JsonConverter, payload_of, start_of
from moldau.connect.errors import DataError

START = b'{"schema":{"type":"struct","fields":[{"type":"string","field":"a"},{"type":"int32","field":"b"}]},"payload":'
WHOLE = START + b'{"a":"x","b":1}}'
TAILS = (
    *(b'{"a":"y","b":2}}', b' {"a":"y","b":2}}', b'{"a":"y","b":2} }', b'{"a":"y","b":2}}\n', b'{"a":"y","b":2}}x'),
    *(b'{"a":"y","b":2},"more":1}', b'{"a":"y","b":2},"payload":{"a":"z","b":3}}', b'{"a":"y","b":2},"schema":null}'),
    *(b"null}", b"{}}", b"[]}", b'{"a":5,"b":"x"}}', b'{"a":"y","b":4294967297}}', b'{"a":"\xc3\xa4","b":2}}'),
    *(b'{"a":"\xff","b":2}}', b'{"a":"\xed\xa0\x80","b":2}}', b'{"a":"y","b":2.5}}', b'{"a":"y","b":2}', b"", b"}"),
    *(b'{"a":"y","b":true}}', b'{"a":NaN,"b":2}}', b"[" * 100_000, b'{"a":"y","b":-0}}', b'{"a":"y","b":2}}}'),
)


def outcome(converter: JsonConverter, found: bytes) -> Any:
    try:
        made = converter.read("t", found)
    except Exception as error:
        return type(error), str(error)
    return made.schema, made.value


def new() -> JsonConverter:
    return JsonConverter(JSON.settings.parse({"converter.type": "value"}))


@pytest.mark.parametrize("tail", TAILS)
def test_the_second_envelope_is_read_as_the_first_would_be(tail: bytes) -> None:
    warm = new()
    warm.read("t", WHOLE)
    assert outcome(warm, START + tail) == outcome(new(), START + tail)
    assert outcome(warm, WHOLE) == outcome(new(), WHOLE)


def test_an_envelope_whose_schema_comes_twice_is_no_start_for_others() -> None:
    twice = START + b'{"a":"x","b":1},"schema":{"type":"string"}}'
    assert start_of(twice) == b"" and start_of(WHOLE) == START
    assert start_of(b'{"payload":1,"schema":null}') == b"" and start_of(b'{"schema":') == b""
    assert payload_of(WHOLE, len(START)) == {"a": "x", "b": 1}


@pytest.mark.parametrize("found", [b"", b" ", b"\n\t"])
@pytest.mark.parametrize(("kind", "value"), [("string", None), ("int8", 0), ("double", 0.0), ("boolean", False)])
def test_nothing_at_all_is_not_null_where_the_settings_have_the_schema(found: bytes, kind: str, value: Any) -> None:
    content = json.dumps({"type": kind, "optional": False})
    converter = JsonConverter(JSON.settings.parse({"converter.type": "value", "schema.content": content}))
    assert converter.read("t", found).value == value
    with pytest.raises(DataError, match="null"):
        converter.read("t", b"null")

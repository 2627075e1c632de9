"""JsonConverter reads only the payload of an envelope that begins as the last one did: what comes out is the same."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

from moldau.connect.converters import json as module
from moldau.connect.converters.json import JSON, JsonConverter, payload_of, start_of
from moldau.connect.converters.json_structs import struct_decoder
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


# What is decoded in C is what the rules make of it.

NAMES = (*"abcdefgh", "ä", "x y", "")
KINDS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
LOGICAL = (
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": {"scale": "2"}},
    {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
    {"type": "int32", "name": "org.apache.kafka.connect.data.Time", "version": 1},
    {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
    {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
)
NUMBERS = ("0", "-0", "-0.0", "1.0", "1e2", "-1e-400", "1e400", "127", "128", "-129", "4294967296", "1e", "01", "-")
WIDE = ("9223372036854775807", "9223372036854775808", "-9223372036854775809", "12345678901234567.0", "0.1", "1E+5")
TEXTS = ('""', '"x"', '"\\ud800"', '"\\u0000"', '"\\/ä"', '"MTIz"', '"MTI"', '"\x01"', '"AAAA\\n"', '"-12.5"', '"\x7f"')
tokens = st.one_of(
    st.sampled_from((*NUMBERS, *WIDE, *TEXTS, "true", "false", "null", "NaN", "[]", "{}", "nul", "")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers().map(str),
    st.text(max_size=5).map(json.dumps),
)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    more = st.fixed_dictionaries({"optional": st.booleans()})
    leaves = st.one_of(st.sampled_from(KINDS).map(lambda kind: {"type": kind}), st.sampled_from(LOGICAL))
    with_default = st.sampled_from([{"type": "string", "default": "d"}, {"type": "int32", "default": 3}])
    each = st.tuples(st.one_of(*[leaves] * 9, with_default), more).map(lambda both: both[0] | both[1])

    def several(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        fields = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4).map(
            lambda found: {"type": "struct", "fields": [one | {"field": name} for name, one in found.items()]}
        )
        item = inner.filter(lambda one: "default" not in one)
        arrays = item.map(lambda one: {"type": "array", "items": one})
        maps = item.map(lambda one: {"type": "map", "keys": {"type": "string"}, "values": one})
        return st.tuples(st.one_of(fields, arrays, maps), more).map(lambda both: both[0] | both[1])

    deep = st.recursive(each, several, max_leaves=4)
    return st.dictionaries(st.sampled_from(NAMES), deep, min_size=1, max_size=4).map(
        lambda found: {"type": "struct", "fields": [one | {"field": name} for name, one in found.items()]}
    )


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Values that nearly fit a schema."""
    kind = schema["type"]
    if kind == "struct":
        parts = st.tuples(*(st.tuples(st.just(one["field"]), fitting(one)) for one in schema["fields"]))
        extra = st.sampled_from([*[[]] * 15, [("more", "1")], [(schema["fields"][0]["field"], '"x"')]])
        made = st.tuples(parts, extra).map(
            lambda both: "{" + ", ".join(f"{json.dumps(name)}:{one}" for name, one in (*both[0], *both[1])) + "}"
        )
    elif kind == "array":
        made = st.lists(fitting(schema["items"]), max_size=3).map(lambda found: f"[{','.join(found)}]")
    elif kind == "map":
        made = st.dictionaries(st.text(max_size=2), fitting(schema["values"]), max_size=2).map(
            lambda found: "{" + ",".join(f"{json.dumps(name)}: {one}" for name, one in found.items()) + "}"
        )
    elif kind.startswith("int"):
        made = st.integers(-200, 200).map(str)
    elif kind in ("float", "double"):
        made = st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr), st.just("-0.0"))
    elif kind == "boolean":
        made = st.sampled_from(("true", "false"))
    else:
        made = st.sampled_from(('"MTIz"', '"AQ=="', '"x"', '"ä"', '""'))
    return st.sampled_from([False] * 30 + [True]).flatmap(lambda is_odd: tokens if is_odd else made)


@given(st.data())
def test_structs_are_decoded_as_the_rules_read_them(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    payload = data.draw(fitting(schema)).encode("utf-8", "surrogatepass")
    outcomes = read_both_ways(schema, payload)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "float"}, "0.1", 0.10000000149011612),
        ({"type": "string", "default": "d"}, "null", "d"),
        ({"type": "array", "items": {"type": "double", "optional": True}}, "[null, 1.5]", [None, 1.5]),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "double"}}, '{"k": 1}', {"k": 1.0}),
        ({"type": "double", "optional": True}, "null", None),
    ],
)
def test_fields_are_decoded_as_the_rules_read_them(field: dict[str, Any], text: str, value: Any) -> None:
    schema = {"type": "struct", "fields": [field | {"field": "a"}]}
    both = read_both_ways(schema, b'{"a": %s}' % text.encode())
    assert both[0] == both[1] and repr(value) in both[0]


def read_both_ways(schema: dict[str, Any], payload: bytes) -> list[Any]:
    """Read a payload with and without the decoder in C: values, or errors."""
    made: list[Any] = []
    for decoder in (struct_decoder, lambda *_: None):
        with patch.object(module, "struct_decoder", decoder):
            one = new()
            read = one._payload_reader(one.schema_of(schema))
            try:
                made.append(repr(read(payload + b"}", 0).values))
            except Exception as error:
                made.append((type(error), str(error)))
    return made


def test_names_that_msgspec_does_not_take_are_read_by_the_rules() -> None:
    schema = new().schema_of({"type": "struct", "fields": [{"type": "string", "field": 'q"'}]})
    assert schema is not None and struct_decoder(schema, new().value) is None
    read = new()._payload_reader(schema)
    assert read(b'{"q\\"":"x"}}', 0).values == ("x",)


@given(
    st.recursive(
        tokens,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]"),
            st.lists(st.tuples(st.sampled_from(("a", "b", "ä")), inner), max_size=3).map(
                lambda found: "{" + ",".join(f"{json.dumps(name)}:{one}" for name, one in found) + "}"
            ),
        ),
        max_leaves=6,
    )
)
def test_values_without_a_schema_are_decoded_as_the_rules_read_them(text: str) -> None:
    found = text.encode("utf-8", "surrogatepass")
    settings = {"converter.type": "value", "schemas.enable": "false"}
    fast, slow = (JsonConverter(JSON.settings.parse(settings)) for _ in range(2))
    made = outcome(fast, found)
    with patch.object(module, "_DECODE", side_effect=ValidationError):
        assert repr(made) == repr(outcome(slow, found))

"""Avro schemas: canonical text as Java writes it, names, defaults, references, normal form."""

from __future__ import annotations

import pytest

from moldau.serdes.schemas import Limits, Reference, SchemaError, formatted, normalize, parse

# What is given -> its canonical text.
CANONICAL = {
    '"int"': '"int"',
    '{"type":"int"}': '"int"',
    '{"type":"int","logicalType":"date"}': '{"type":"int","logicalType":"date"}',
    '["null", "int"]': '["null","int"]',
    '{"type":"record","name":"a.b.C","fields":[]}': '{"type":"record","name":"C","namespace":"a.b","fields":[]}',
    '{"fields":[{"type":"R","name":"a","order":"ascending"}],"type":"record","name":"R","doc":5}': (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"R"}]}'
    ),
    '{"type":"record","name":"R","namespace":"n","aliases":["n.Q","m.P"],"x":1.0e10,"doc":"\\u00e9\\u001f","fields":'
    '[{"x":{"b":1,"a":2},"default":"1.5","name":"a","type":"double","order":"DESCENDING","aliases":["b"]}]}': (
        '{"type":"record","name":"R","namespace":"n","doc":"é\\u001F","fields":[{"name":"a","type":"double",'
        '"default":1.5,"order":"descending","aliases":["b"],"x":{"b":1,"a":2}}],"x":1.0E10,"aliases":["Q","m.P"]}'
    ),
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"E"},{"name":"b","type":{"type":"enum",'
    '"name":"E","symbols":["A"],"default":"A","doc":"d"}},{"name":"c","type":{"type":"fixed","name":"F","namespace":"",'
    '"size":2}},{"name":"d","type":"F"}]}': (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"enum","name":"E","doc":"d",'
        '"symbols":["A"],"default":"A"}},{"name":"b","type":"E"},{"name":"c","type":{"type":"fixed","name":"F",'
        '"namespace":"","size":2}},{"name":"d","type":"F"}]}'
    ),
}

# What is given -> a part of what is said about it.
REFUSED = {
    "int": "not valid JSON",
    "null": "not an Avro schema",
    "{}": "no type",
    '{"type":{"type":"string"}}': "no type",
    '"Nope"': "Nope is used but not defined",
    '[{"type":"record","name":"B","fields":[]},"a.B"]': "a.B is used but not defined",
    '["int","int"]': "int twice",
    '[["int"]]': "union stands directly",
    '{"type":"array"}': "has no items",
    '{"type":"record","name":"R"}': "no fields",
    '{"type":"record","name":"int","fields":[]}': "primitive",
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}': "a twice",
    '{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}': "'a-b' is not valid",
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}': 'default "x"',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":2147483648}]}': "default 2147483648",
    '{"type":"record","name":"R","fields":[{"name":"a","type":"R","default":{}}]}': "default {}",
    '{"type":"enum","name":"E","symbols":["A","A"]}': "symbol twice",
    '{"type":"enum","name":"E","symbols":["A"],"default":"B"}': "none of its symbols",
    '{"type":"fixed","name":"F","size":-1}': "no valid size",
    '{"type":"record","name":"R","doc":"\\ud800","fields":[]}': "not valid",
}


@pytest.mark.parametrize("given", CANONICAL)
def test_canonical_text_is_what_java_writes(given: str) -> None:
    assert parse("AVRO", given, new=True).text == CANONICAL[given]


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_wrong_is_said(given: str) -> None:
    with pytest.raises(SchemaError, match=r".") as raised:
        parse("AVRO", given, new=True)
    assert REFUSED[given] in str(raised.value)


def test_defaults_and_names_are_checked_only_when_a_schema_is_new() -> None:
    old = '{"type":"record","name":"Größe","fields":[{"name":"a","type":"int","default":"x"}]}'
    assert parse("AVRO", old).text == old
    with pytest.raises(SchemaError):
        parse("AVRO", old, new=True)


def test_a_reference_is_written_by_its_name_and_resolved_on_demand() -> None:
    inner = '{"type":"record","name":"Inner","namespace":"n","fields":[]}'
    outer = '{"type":"record","name":"Outer","namespace":"n","fields":[{"name":"i","type":"Inner"}]}'
    parsed = parse("AVRO", outer, [Reference("n.Inner", "inner", 1)], {"n.Inner": inner}, new=True)
    assert parsed.name == "n.Outer"
    assert parsed.text == outer
    assert formatted(parsed, "resolved") == outer.replace('"Inner"', inner.replace(',"namespace":"n"', ""))
    assert formatted(parsed, "unheard-of") == outer


def test_normal_form_forgets_order_of_attributes_and_relative_names() -> None:
    one = '{"namespace":"n","type":"record","name":"R","b":1,"a":2,"fields":[{"name":"f","type":"double","default":1}]}'
    two = '{"type":"record","a":2,"b":1,"name":"n.R","fields":[{"default":1.0,"type":"double","name":"f"}]}'
    assert parse("AVRO", one).text != parse("AVRO", two).text
    assert normalize(parse("AVRO", one)).text == normalize(parse("AVRO", two)).text


@pytest.mark.parametrize(
    "bomb",
    [
        '{"type":"array","items":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '"' + "x" * 1_000_000 + '"',
        '{"type":"array","items":' * 180 + '"int"' + "}" * 180 + "x" * 10,
    ],
    ids=["open", "closed", "big", "dangling"],
)
def test_bombs_are_refused(bomb: str) -> None:
    with pytest.raises(SchemaError):
        parse("AVRO", bomb, new=True)


def test_defaults_within_defaults_do_not_grow_exponentially() -> None:
    schema = '"int"'
    for level in range(30):
        fields = ",".join(
            f'{{"name":"{name}","type":{kind},"default":{{}}}}'
            for name, kind in (("a", schema), ("b", f'"L{level - 1}"'))
        )
        schema = f'{{"type":"record","name":"L{level}","fields":[{fields if level else ""}]}}'
    parse("AVRO", schema, new=True, limits=Limits(depth=1000))


def test_a_number_of_references_is_allowed_and_no_more() -> None:
    resolved = {f"r{number}": f'{{"type":"record","name":"r{number}","fields":[]}}' for number in range(3)}
    parse("AVRO", '"r1"', resolved=resolved, limits=Limits(references=3))
    with pytest.raises(SchemaError, match="3 schemas are referenced"):
        parse("AVRO", '"r1"', resolved=resolved, limits=Limits(references=2))

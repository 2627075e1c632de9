"""Avro compatibility: findings with types, paths and details as Java's, and the seven levels."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from moldau.registry.compatibility import LEVELS, check
from moldau.registry.compatibility.avro_check import find
from moldau.registry.compatibility.differences import MOST
from moldau.serdes.schemas import Parsed, parse


def avro(text: str) -> Parsed:
    return parse("AVRO", text)


def record(*fields: str, name: str = "R") -> Parsed:
    return avro(f'{{"type":"record","name":"{name}","fields":[{",".join(fields)}]}}')


A = '{"name":"a","type":"int"}'
B = '{"name":"b","type":"int"}'
B_DEFAULT = '{"name":"b","type":"int","default":1}'

# reader, writer -> what is found
FINDINGS = [
    ('"long"', '"int"', []),
    ('"bytes"', '"string"', []),
    ('"int"', '"long"', ["TYPE_MISMATCH / reader type: INT not compatible with writer type: LONG"]),
    ('["null","int"]', '"int"', []),
    ('["null"]', '"int"', ["MISSING_UNION_BRANCH / reader union lacking writer type: INT"]),
    ('["int"]', '["int","string"]', ["MISSING_UNION_BRANCH /1 reader union lacking writer type: STRING"]),
    ('"int"', '["int","string"]', ["TYPE_MISMATCH /1 reader type: INT not compatible with writer type: STRING"]),
    (
        '{"type":"array","items":{"type":"fixed","name":"F","size":3}}',
        '{"type":"array","items":{"type":"fixed","name":"F","size":2}}',
        ["FIXED_SIZE_MISMATCH /items/size expected: 2, found: 3"],
    ),
    (
        '{"type":"map","values":{"type":"enum","name":"E","symbols":["A"]}}',
        '{"type":"map","values":{"type":"enum","name":"E","symbols":["C","B","A"]}}',
        ["MISSING_ENUM_SYMBOLS /values/symbols [B, C]"],
    ),
    (
        '{"type":"enum","name":"E","symbols":["A"],"default":"A"}',
        '{"type":"enum","name":"E","symbols":["C","B","A"]}',
        [],
    ),
    (
        '{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}',
        '{"type":"record","name":"n.Q","fields":[]}',
        ["NAME_MISMATCH /name expected: n.Q", "READER_FIELD_MISSING_DEFAULT_VALUE /fields/0 x"],
    ),
    (
        '{"type":"record","name":"R","aliases":["n.Q"],"fields":[{"name":"x","type":"long","aliases":["y"]}]}',
        '{"type":"record","name":"n.Q","fields":[{"name":"y","type":"int"}]}',
        [],
    ),
    (
        '{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]},{"name":"v","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]},{"name":"v","type":"string"}]}',
        ["TYPE_MISMATCH /fields/1/type reader type: INT not compatible with writer type: STRING"],
    ),
]


@pytest.mark.parametrize(("reader", "writer", "expected"), FINDINGS)
def test_findings_say_type_path_and_detail(reader: str, writer: str, expected: list[str]) -> None:
    found = find(avro(reader).raw, avro(writer).raw)
    assert [f"{finding.type} {finding.path} {finding.detail}" for finding in found] == expected


# new, previous (oldest first) -> the levels at which it is compatible
FITS = [
    (record(A), [record(A, B)], {"BACKWARD", "BACKWARD_TRANSITIVE"}),
    (record(A, B), [record(A)], {"FORWARD", "FORWARD_TRANSITIVE"}),
    (record(A, B_DEFAULT), [record(A)], set(LEVELS) - {"NONE"}),
    (record(A, B), [record(A), record(A, B_DEFAULT)], {"BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL"}),
    (record(A), [], set(LEVELS) - {"NONE"}),
    (record(A), [parse("JSON", "{}")], set()),
]


@pytest.mark.parametrize(("new", "previous", "fits"), FITS)
def test_a_level_says_who_reads_whom(new: Parsed, previous: list[Parsed], fits: set[str]) -> None:
    assert {level for level in LEVELS if not check(level, new, previous)} == fits | {"NONE"}


def test_messages_say_where_and_why_and_against_which_schema() -> None:
    old = replace(record(A), version=3)
    assert check("BACKWARD", record(A, B), [old]) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' of the new "
        "schema has no default value, and the old schema does not have it', additionalInfo:'b'}",
        "{oldSchemaVersion: 3}",
        f"{{oldSchema: '{old.text}'}}",
        "{compatibility: 'BACKWARD'}",
    ]


def test_an_older_schema_of_great_length_is_shown_in_part() -> None:
    old = record(*(f'{{"name":"f{number}","type":"int"}}' for number in range(1000)))
    assert any(message.startswith("{oldSchema: <truncated> '{") for message in check("BACKWARD", avro('"int"'), [old]))


def nested(levels: int, leaf: str) -> Parsed:
    """Each record has the next one twice, so that the innermost stands in more places than can be counted."""
    text = f'{{"type":"record","name":"R{levels}","fields":[{{"name":"x","type":"{leaf}"}}]}}'
    for at in reversed(range(levels)):
        fields = f'{{"name":"a","type":{text}}},{{"name":"b","type":"R{at + 1}"}}'
        text = f'{{"type":"record","name":"R{at}","fields":[{fields}]}}'
    return parse("AVRO", text)


def test_what_differs_in_countless_places_is_told_of_some() -> None:
    assert len(find(nested(60, "int").raw, nested(60, "string").raw)) == MOST
    assert find(nested(60, "long").raw, nested(60, "int").raw) == []


def union(name: str, branches: int) -> Parsed:
    return parse(
        "AVRO", json.dumps([{"type": "record", "name": f"{name}{at}", "fields": []} for at in range(branches)])
    )


def test_unions_that_are_too_large_to_compare_are_told() -> None:
    assert check("BACKWARD", union("R", 1000), [union("R", 1000)]) == []
    [message, *_] = check("BACKWARD", union("R", 500), [union("Q", 500)])
    assert "too large" in message

"""What all connectors for change data capture share: envelopes, keys that change, marks, incremental snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.connectors.cdc import envelope
from moldau.connect.connectors.cdc.envelope import At, Column, TableEvents, change
from moldau.connect.connectors.cdc.settings import key_columns, matcher
from moldau.connect.connectors.cdc.snapshot import PROGRESS, Incremental, marked
from moldau.connect.data import INT32, OPTIONAL, STRING, Struct, Type
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.names import adjuster

SOURCE = envelope.source_schema("x.Source", {"table": STRING})
COLUMNS = [Column("id", INT32, int), Column("name", OPTIONAL[Type.STRING], str)]
TABLE = TableEvents("s.public.t", COLUMNS, ["id"], SOURCE)
WITHOUT_KEY = TableEvents("s.public.u", COLUMNS, [], SOURCE)
AT = At(
    Struct.of(SOURCE, version="1", connector="x", name="s", ts_ms=1, db="d", table="t"), {"server": "s"}, {"lsn": 7}
)


def shown(records: list[Any]) -> list[Any]:
    return [
        (
            one.key and one.key.values,
            one.value
            and (one.value["op"], *(one.value[part] and one.value[part].values for part in ("before", "after"))),
            [(header.name, header.value.values) for header in one.headers],
        )
        for one in records
    ]


def test_schemas_have_the_names_of_debezium() -> None:
    assert TABLE.key_schema is not None
    assert (TABLE.key_schema.name, TABLE.row_schema.name) == ("s.public.t.Key", "s.public.t.Value")
    assert (TABLE.envelope.name, TABLE.envelope.version, TABLE.row_schema.optional) == ("s.public.t.Envelope", 2, True)
    names = [one.name for one in TABLE.envelope.fields]
    assert names == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]
    assert AT.source["snapshot"] == "false" and AT.source.get_without_default("snapshot") is None


def test_a_delete_is_followed_by_a_tombstone() -> None:
    row = TABLE.row((1, "a"))
    assert shown(change(TABLE, "d", row, None, AT)) == [((1,), ("d", (1, "a"), None), []), ((1,), None, [])]
    assert len(change(TABLE, "d", row, None, AT, tombstones=False)) == 1
    without = change(WITHOUT_KEY, "d", WITHOUT_KEY.row((1, "a")), None, AT)
    assert shown(without) == [(None, ("d", (1, "a"), None), []), (None, None, [])]
    for one in change(TABLE, "d", row, None, AT)[:1]:
        one.value.validate()
        assert one.source_offset == {"lsn": 7}


def test_another_key_is_a_delete_and_a_create() -> None:
    found = change(TABLE, "u", TABLE.row((1, "a")), TABLE.row((2, "a")), AT)
    assert shown(found) == [
        ((1,), ("d", (1, "a"), None), [("__debezium.newkey", (2,))]),
        ((1,), None, [("__debezium.newkey", (2,))]),
        ((2,), ("c", None, (2, "a")), [("__debezium.oldkey", (1,))]),
    ]
    assert shown(change(TABLE, "u", TABLE.row((1, "a")), TABLE.row((1, "b")), AT)) == [
        ((1,), ("u", (1, "a"), (1, "b")), [])
    ]


def test_a_transaction_counts_its_changes() -> None:
    one = envelope.Transaction("5:7", 3)
    assert [one.block(table).values for table in "aab"] == [("5:7", 1, 1), ("5:7", 2, 2), ("5:7", 3, 1)]
    end = one.boundary("topic", "END", {}, {})
    end.value.validate()
    assert [each.values for each in end.value["data_collections"]] == [("a", 2), ("b", 1)]
    assert one.boundary("topic", "BEGIN", {}, {}).value.values == ("BEGIN", "5:7", None, None, 3)


@pytest.mark.parametrize(
    ("rows", "marks"),
    [
        ("", []),
        ("a", ["last"]),
        ("aa", ["first", "last"]),
        ("ab", ["first", "last"]),
        ("abc", ["first", "last_in_data_collection", "last"]),
        (
            "aaabb",
            ["first", "true", "last_in_data_collection", "first_in_data_collection", "last"],
        ),
    ],
)
def test_rows_of_a_snapshot_are_marked(rows: str, marks: list[str]) -> None:
    assert [mark for _, _, mark in marked((table, n) for n, table in enumerate(rows))] == marks


def test_a_chunk_gives_way_to_changes_until_the_stream_has_passed_it() -> None:
    one = Incremental()
    assert not one.wants_chunk and one.stored() == {}
    assert one.signal("execute-snapshot", '{"data-collections": ["t", "u"], "type": "incremental"}')
    assert not one.signal("log", "{}")
    assert one.wants_chunk
    one.took({(1,): "a", (2,): "b", (3,): "c"}, 100)
    one.seen("u", (1,))
    one.seen("t", (3,))
    assert one.passed(99) == [] and not one.wants_chunk
    assert one.passed(100) == [((1,), "a"), ((2,), "b")]
    assert one.last == [3]  # although its row gave way
    again = Incremental.of(one.stored((2,)))
    assert (again.tables, again.last, again.wants_chunk) == (["t", "u"], [2], True)
    one.took({}, 200)
    assert (one.tables, one.last) == (["u"], None)
    one.signal("pause-snapshot", None)
    assert not one.wants_chunk
    one.signal("resume-snapshot", None)
    one.signal("stop-snapshot", None)
    assert one.tables == [] and PROGRESS not in one.stored()
    with pytest.raises(ConnectError, match="not understood"):
        one.signal("execute-snapshot", "[")


def test_lists_and_keys_are_expressions() -> None:
    takes = matcher([r"public\.a.*", "Other.b"], [])
    assert [takes(name) for name in ("public.ab", "x.public.a", "other.b", "public.b")] == [True, False, True, False]
    assert [matcher([], ["a"])(name) for name in "ab"] == [False, True]
    with pytest.raises(ConfigError, match="exclude each other"):
        matcher(["a"], ["b"])
    columns = key_columns(r"public\.(a|b):x, y;c:z")
    assert [columns(name) for name in ("public.a", "c", "d")] == [["x", "y"], ["z"], None]
    with pytest.raises(ConfigError, match="separate tables"):
        key_columns("public.a")
    with pytest.raises(ConfigError, match="not a regular expression"):
        key_columns("public.(a:x")


def test_expressions_are_those_of_java() -> None:
    takes = matcher([r"\Qa.b\E", "shop.[a-z&&[^x]]+", r"É\p{Digit}"], [])
    names = ("A.B", "aXb", "shop.ab", "shop.ax", "É1", "é1")
    assert [takes(name) for name in names] == [True, False, True, False, True, False]


def test_names_are_made_to_fit() -> None:
    assert envelope.topic_name("s", "public", "ä b") == "s.public.__b"
    assert [adjuster(mode, dots=True)("a-b.c") for mode in ("none", "avro", "avro_unicode")] == [
        "a-b.c",
        "a_b.c",
        "a_u002db.c",
    ]
    assert [adjuster(mode, dots=False)("7.b_c") for mode in ("none", "avro", "avro_unicode")] == [
        "7.b_c",
        "_7_b_c",
        "_u0037_u002eb_u005fc",
    ]

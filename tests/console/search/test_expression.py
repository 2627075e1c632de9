"""Conditions: what they mean, asked of DuckDB, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from moldau.client import Fetched, Record, build
from moldau.console.model.problems import Refused
from moldau.console.search.expression import LONGEST, condition
from moldau.console.search.scanning import Matcher
from moldau.serdes.registry import Registry, RegistryError
from moldau.spark.source.batches import decoded
from moldau.wire.errors import Error

ORDER = {"id": 9007199254740993, "amount": 12.5, "paid": True, "country": "cz", "items": [{"sku": "A1"}], "a.b/c~": 1}
RECORDS = [
    Record(0, 1000, b"eu-1", json.dumps(ORDER).encode(), (("trace", b"abc"), ("trace", b"def"))),
    Record(1, 2000, b"us-2", b'{"amount": "7", "country": null, "id": 9007199254740992}', ()),
    Record(2, 3000, None, b"<b>plain</b> text's", (("X", None), ("\udcff", b"\xff"))),
    Record(3, 4000, b"\xff", b"\xff\xfe it's broken", ()),
    Record(4, 5000, b"none", None, ()),
]


def no_registry() -> Registry:
    raise RegistryError("there is none")


def rows(text: str, records: list[Record] | None = None) -> list[int]:
    found = Fetched(Error.NONE, memoryview(build(records or RECORDS)), 5, 5, 0)
    matcher = Matcher("t", condition(text), no_registry)
    try:
        return [row for some in decoded(found, 0, 10_000) for row in matcher.rows(1, some)]
    finally:
        matcher.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.amount > 10", [0]),
        ("value.amount < 10 or value.paid", [0, 1]),
        ("value.amount * 2 = 25", [0]),
        ("value.id = 9007199254740993", [0]),
        ("value.country = 'cz' and value.items[0].sku like 'A%'", [0]),
        ("value['a.b/c~'] = 1", [0]),
        ("value.country is null", [1, 2, 3, 4]),
        ("value is null", [4]),
        ("value is not null and not value.amount > 0", []),
        ("key like 'eu-%'", [0]),
        ("key in ('eu-1', 'us-2')", [0, 1]),
        ("key is null", [2]),
        ("headers.trace = 'abc'", [0]),
        ("headers['trace'] in ('abc')", [0]),
        ("offset between 1 and 3 and partition = 1", [1, 2, 3]),
        ("timestamp >= 4000", [3, 4]),
        ("time < '1970-01-01 00:00:02'", [0]),
        ("value rlike 'pl[a-z]+n'", [2]),
        ("value like '%text\\'s'", [2]),
        ("length(key) = 4", [0, 1, 4]),
        ("upper(value.country) = 'CZ'", [0]),
        ("coalesce(value.amount, 0) = 0", [2, 3, 4]),
        ("cast(value.amount as int) = 7", [1]),
        ("contains(value, 'broken')", [3]),
        ("value.amount > value.id", []),
        ("plain", [2]),
        ("'it\\'s'", [3]),
        ("ABC", [0]),
        ("substring(key, 1, 2) = 'us'", [1]),
        ("true", [0, 1, 2, 3, 4]),
        ("size(value.items) = 1 and size(value.country) = 0", [0]),
    ],
)
def test_a_condition_is_true_of(text: str, expected: list[int]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "value.amount >",
        "amount > 10",
        "value + 1",
        "select 1",
        "key in (select 1)",
        "exists(select * from read_text('/etc/passwd'))",
        "value = (select content from read_text('/etc/passwd'))",
        "read_text('/etc/passwd') = 'x'",
        "getenv('HOME') = 'x'",
        "value = any(select 1)",
        "1; drop table chunk",
        "cast(value as blob) = 'x'",
        "headers = 'x'",
        "key.a.b(c) = 1",
        "sum(value.amount) > 1",
        "value = $1",
        "value = @x",
        "offset.a = 1",
        "(" * 500,
        "x" * (LONGEST + 1),
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        condition(text)


@pytest.mark.parametrize(
    "text", ["value = '''; drop table chunk; --'", 'value."a\'b" = 1', "key = '\\\\'", "value.`x'y` = 2"]
)
def test_quotes_stay_in_their_text(text: str) -> None:
    assert rows(text) == []


def test_many_records_are_looked_through_in_their_order() -> None:
    many = [Record(n, n, None, b'{"n":%d}' % n, ()) for n in range(5000)]
    assert rows("value.n % 1000 = 999", many) == [999, 1999, 2999, 3999, 4999]
    assert isinstance(rows("value.n < 2", many)[0], int) and np.all(np.diff(rows("value.n > 10", many)) > 0)


def test_a_search_cannot_reach_files_even_if_sql_could() -> None:
    import duckdb

    matcher = Matcher("t", condition("true"), no_registry)
    connection: Any = matcher._connection
    with pytest.raises(duckdb.Error):
        connection.execute("select * from read_text('/etc/passwd')")
    with pytest.raises(duckdb.Error):
        connection.execute("set enable_external_access = true")
    matcher.close()

"""SQL expressions over records: Spark's words and Spark's meaning."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.operators.context import TopologyError
from moldau.operators.expressions import evaluation
from moldau.operators.record import Record

ORDER = {"amount": 1500, "who": {"name": "Ann"}, "tags": ["a", "b"], "price": 2.5, "none": None, "ok": True}
RECORD = Record("k1", ORDER, 1_000, (("source", b"web"),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.amount > 1000", True),
        ("value.amount > 1000 and key is not null", True),
        ("value.amount >= 1500 and not value.ok", False),
        ("value.missing > 1", None),
        ("value.missing > 1 or true", True),
        ("value.missing > 1 and false", False),
        ("not value.missing", None),
        ("value.none is null", True),
        ("value.none <=> null", True),
        ("value.amount is distinct from 1500", False),
        ("value.who.name like 'A%'", True),
        ("value.who.name like '_n'", False),
        ("value.who['name'] rlike '^A'", True),
        ("value.tags[1]", "b"),
        ("value.tags[7]", None),
        ("size(value.tags)", 2),
        ("array_contains(value.tags, 'b')", True),
        ("upper(value.who.name) || '-' || key", "ANN-k1"),
        ("concat(key, value.amount)", "k11500"),
        ("length(key) + 1", 3),
        ("value.amount / 1000", 1.5),
        ("7 div 2", 3),
        ("-7 div 2", -3),
        ("-7 % 3", -1),
        ("round(2.5)", 3.0),
        ("round(value.price * 1.1, 1)", 2.8),
        ("abs(-3)", 3),
        ("substring(value.who.name, 2)", "nn"),
        ("substring('abcdef', -3, 2)", "de"),
        ("case when value.amount > 2000 then 'big' when value.ok then 'good' else 'bad' end", "good"),
        ("case key when 'k1' then 1 end", 1),
        ("if(value.ok, 1, 2)", 1),
        ("coalesce(value.none, value.missing, 5)", 5),
        ("nullif(key, 'k1')", None),
        ("key in ('a', 'k1')", True),
        ("key in ('a', null)", None),
        ("key not in ('a', 'b')", True),
        ("value.amount between 1 and 1500", True),
        ("cast('12' as int) + 1", 13),
        ("cast(value.amount as string)", "1500"),
        ("cast('true' as boolean)", True),
        ("value.amount = '1500'", True),
        ("timestamp - 1", 999),
        ("headers.source is not null", True),
        ("startswith(key, 'k') and contains(key, '1')", True),
        ("null", None),
    ],
)
def test_an_expression_has_the_meaning_that_spark_gives_it(text: str, expected: Any) -> None:
    found = evaluation(text, "node")(RECORD)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value >", "of node is not valid SQL"),
        ("select 1", "is not an expression over key, value, timestamp and headers"),
        ("count(value)", "is not an expression"),
        ("price > 3", "uses the name price, which is none of key, value, timestamp, headers: write it as a function"),
        ("reverse(key) = 'a'", "which cannot be evaluated here: write it as a function"),
        ("cast(key as date)", "uses a cast to DATE"),
        ("(" * 2_000 + "1" + ")" * 2_000, "not valid SQL|nests too deeply"),
        ("1" + " + 1" * 5_000, "longer than 10000 characters"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        evaluation(text, "node")

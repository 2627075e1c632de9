"""Pull queries whose plans are kept: they answer as if they were planned anew, whatever has changed in between."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.operators.record import Produced
from moldau.sql.errors import ParseError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.lexer import tokenize
from moldau.sql.server import materialized
from moldau.sql.server.columns import columns_of
from moldau.sql.server.errors import ServerError
from moldau.sql.server.materialized import View
from moldau.sql.server.news import lowest
from moldau.sql.server.pulling import MOST_LAG
from moldau.sql.server.service import Request, Service
from moldau.sql.server.shapes import filled, shape_of, stand_ins
from moldau.sql.server.together import Together
from moldau.sql.server.topics import MemoryTopics, Positions
from moldau.sql.transient.pull import SCANS

WITH = "WITH (kafka_topic='{0}', value_format='JSON', key_format='{1}', partitions=3);"
USERS = "CREATE TABLE users (name STRING PRIMARY KEY, age INT, town STRING) " + WITH.format("users", "KAFKA")
NUMBERS = "CREATE TABLE numbers (id BIGINT PRIMARY KEY, text STRING) " + WITH.format("numbers", "KAFKA")
PAIRS = "CREATE TABLE pairs (a STRING PRIMARY KEY, b INT PRIMARY KEY, c INT) " + WITH.format("pairs", "JSON")
VISITS = "CREATE STREAM visits (page STRING KEY, n INT) " + WITH.format("visits", "KAFKA")
QUERYABLE = "CREATE TABLE {0} AS SELECT * FROM {1};"
HOURLY = "CREATE TABLE hourly AS SELECT page, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY page;"
HOUR_MS, WAIT_S = 3_600_000, 120.0
STRICTLY, FULL = {DIALECT: STRICT}, {DIALECT: ""}  # what ksqlDB refuses is DuckDB's


class Counting(MemoryTopics):
    """Topics that count how often they are asked for their ends."""

    asked = 0

    def ends(self, topic: str) -> Positions:
        Counting.asked += 1
        return MemoryTopics.ends(self, topic)


@pytest.fixture
def service() -> Iterator[Service]:
    made = _new()
    yield made
    made.close()


@pytest.fixture
def tables(service: Service) -> Service:
    return _fill(service)


@pytest.fixture(scope="module")
def fixed() -> Iterator[Service]:
    """The same tables for tests that change nothing but the plans that are kept."""
    made = _fill(_new())
    yield made
    made.close()


def _new() -> Service:
    return Service(Counting(), settings={"auto.offset.reset": "earliest"}, clock=lambda: 1_000)


def _fill(service: Service) -> Service:
    do(service, USERS, NUMBERS, PAIRS, VISITS, HOURLY)
    do(service, *(QUERYABLE.format(name[0], name) for name in ("users", "numbers", "pairs")))
    for number, name in enumerate(("ann", "bob", "it''s", "", "5")):
        do(service, f"INSERT INTO users VALUES ('{name}', {number}, 'town{number % 2}');")
    for number in (-5, 0, 5, 123_456_789, 12_345_678_901):
        do(service, f"INSERT INTO numbers VALUES ({number}, 'n{number}');")
    for number in range(4):
        do(service, f"INSERT INTO pairs VALUES ('a{number % 2}', {number}, {number * 10});")
        do(service, f"INSERT INTO visits (rowtime, page, n) VALUES ({number * HOUR_MS}, 'p', 1);")
    settle(service)
    return service


def do(service: Service, *statements: str) -> None:
    service.execute(Request(" ".join(statements)))


def settle(service: Service) -> None:
    for _ in range(100):
        if not service.work():
            return
    raise AssertionError("the queries do not come to rest")


def outcome(service: Service, text: str, **properties: Any) -> Any:
    """Return columns and rows of an answer, or the refusal."""
    try:
        found = service.query(Request(text, {**STRICTLY, **properties}))
    except ServerError as error:
        return error.body()
    return found.schema, [row.columns for row in found.poll()]


def repeated(service: Service, *texts: str, times: int = 3) -> list[Any]:
    return [outcome(service, text) for _ in range(times) for text in texts][-len(texts) :]


# Shapes


@given(st.text(alphabet="ab'\"`-/*\n 019.,;=_@$", max_size=30))
def test_shape_and_values_make_the_text_again(text: str) -> None:
    shape = shape_of(text)
    if shape is not None:
        assert filled(shape.text, shape.values) == text


@given(st.text(alphabet="ab'\"`-/*\n 019.,;=_@e+", max_size=30))
def test_other_values_make_the_same_tokens(text: str) -> None:
    shape = shape_of(text)
    assert shape is not None
    try:
        kinds = [token.kind for token in tokenize(text)]
    except ParseError:
        return
    other = tokenize(filled(shape.text, stand_ins(shape)))
    assert [token.kind for token in other] == kinds


def test_texts_with_variables_or_of_great_length_have_no_shape() -> None:
    assert shape_of("SELECT ${x};") is None and shape_of("\0s") is None and shape_of("a" * 20_000) is None


# Kept plans

LOOKUPS: list[tuple[str, dict[str, list[Any]]]] = [  # and what is found
    (
        "SELECT * FROM u WHERE name = '{}';",
        {
            "ann": ["ann", 0, "town0"],
            "bob": ["bob", 1, "town1"],
            "it''s": ["it's", 2, "town0"],
            "": ["", 3, "town1"],
            "nobody": [],
            "5": ["5", 4, "town0"],
        },
    ),
    (
        "SELECT age + 1 AS next, 'x' AS x, 7 FROM u WHERE name = '{}' LIMIT 1;",
        {"ann": [1, "x", 7], "bob": [2, "x", 7]},
    ),
    ("SELECT /* it's */ x.age FROM u x WHERE 'town1' = x.town AND '{}' = x.name;", {"ann": [], "bob": [1]}),
    ("SELECT text FROM n WHERE id = {};", {"5": ["n5"], "0": ["n0"], "123456789": ["n123456789"], "42": []}),
    ("SELECT c FROM p WHERE a = 'a{}' AND b = 1;", {"0": [], "1": [10]}),
    ("SELECT c FROM p WHERE b = {} AND a = 'a1' AND c > 10;", {"1": [], "3": [30], "2": []}),
    (
        "SELECT n, windowstart FROM hourly WHERE page = '{}' AND windowstart > 3600000 AND windowend <= 10800000;",
        {"p": [1, 2 * HOUR_MS], "q": []},
    ),
]
OTHERS = [
    "SELECT text FROM n WHERE id = {};",  # with other numbers than those of a few digits
    "SELECT name FROM u WHERE name IN ('ann', '{}');",
    "SELECT name FROM u WHERE name = 'ann' OR name = '{}';",
    "SELECT name FROM u WHERE name = 'ann' AND name = '{}';",
    "SELECT name FROM u WHERE name = UCASE('{}');",
    "SELECT name FROM u WHERE name LIKE '{}%';",
    "SELECT name, '{}' AS c FROM u WHERE name = 'ann';",
    "SELECT name FROM u WHERE town = 'town1' LIMIT {};",
    "SELECT name FROM u WHERE name = CAST({} AS STRING);",
    "SELECT n FROM hourly WHERE windowstart = {};",
    "SELECT name AS \"{}\", `NAME` AS `'1'` FROM u;",
    "SELECT name FROM users WHERE name = '{}';",  # not queryable
    "SELECT nothing FROM u WHERE name = '{}';",
    "SELECT name FROM u WHERE age = '{}';",
]


@pytest.mark.parametrize(("text", "rows"), LOOKUPS)
def test_kept_plan_answers_like_a_new_one(fixed: Service, text: str, rows: dict[str, list[Any]]) -> None:
    texts = [text.format(value) for value in rows]
    kept = repeated(fixed, *texts)
    for one in texts:
        assert fixed.pulls.known(Request(one, STRICTLY)) is not None, one
    assert kept == [_anew(fixed, one) for one in texts]
    assert [found for _, found in kept] == [[row] if row else [] for row in rows.values()]


@pytest.mark.parametrize("text", OTHERS)
def test_other_queries_are_answered_like_new_ones(fixed: Service, text: str) -> None:
    texts = [text.format(value) for value in ("1", "2", "ann", "-5", "12345678901", "1.0", "1e0", "")]
    assert repeated(fixed, *texts, times=4) == [_anew(fixed, one) for one in texts]


def _anew(service: Service, text: str) -> Any:
    service.pulls.forget_plans()
    return outcome(service, text)


KEYED = "SELECT * FROM u WHERE name = 'ann';"


def test_source_made_anew_has_its_own_columns(tables: Service) -> None:
    service = tables
    ((before, _),) = repeated(service, KEYED)
    do(service, "DROP TABLE u;", "CREATE TABLE u AS SELECT name, town FROM users;")
    settle(service)
    for _ in range(4):
        schema, rows = outcome(service, KEYED)
        assert schema != before and "AGE" not in schema and rows == [["ann", "town0"]]
    do(service, "DROP TABLE u;")
    assert "does not exist" in outcome(service, KEYED)["message"]


def test_function_that_is_replaced_is_called(tables: Service, tmp_path: Path) -> None:
    service, file = tables, "from moldau.sql import scalar\n@scalar\ndef of_it(n: int) -> int:\n    return {}\n"
    service.engine.folder, text = str(tmp_path), "SELECT of_it(age) AS a FROM u WHERE name = 'bob';"
    try:
        (tmp_path / "f.py").write_text(file.format("n + 10"), "utf-8")
        do(service, "CREATE FUNCTION of_it FROM 'f.py';")
        assert repeated(service, text)[0][1] == [[11]] and service.pulls.known(Request(text, STRICTLY)) is not None
        (tmp_path / "f.py").write_text(file.format("n + 20"), "utf-8")
        do(service, "CREATE OR REPLACE FUNCTION of_it FROM 'f.py';")
        assert outcome(service, text)[1] == [[21]]
    finally:
        do(service, "DROP FUNCTION of_it;")


def test_view_that_is_replaced_is_read(tables: Service) -> None:
    service, text = tables, "SELECT * FROM v WHERE name = 'bob';"
    do(service, "CREATE VIEW v AS SELECT name, age FROM u;")
    assert repeated(service, text)[0][1] == [["bob", 1]]
    do(service, "CREATE OR REPLACE VIEW v AS SELECT name, town FROM u;")
    assert outcome(service, text)[1] == [["bob", "town1"]]


def test_variables_and_properties_count(tables: Service) -> None:
    service, text, scan = tables, "SELECT age FROM u WHERE name = '${who}';", "SELECT age FROM u;"
    for name, age in (("ann", 0), ("bob", 1), ("ann", 0), ("bob", 1)):
        assert [row.columns for row in service.query(Request(text, {}, {"who": name})).poll()] == [[age]]
    ages = repeated(service, scan)[0]
    off = outcome(service, scan, **{SCANS: "false"})
    assert "Missing WHERE clause" in off["message"] and outcome(service, scan) == ages
    do(service, "ALTER SYSTEM 'ksql.query.pull.table.scan.enabled'='false';")
    assert "Missing WHERE clause" in outcome(service, scan)["message"]


def test_changes_of_rows_are_seen(tables: Service) -> None:
    assert repeated(tables, KEYED)[0][1] == [["ann", 0, "town0"]]
    do(tables, "INSERT INTO users VALUES ('ann', 9, 'new');")
    settle(tables)
    assert outcome(tables, KEYED)[1] == [["ann", 9, "new"]]


def test_plan_that_became_invalid_on_the_way_is_not_used(tables: Service) -> None:
    service = tables
    repeated(service, KEYED)
    lookup = service.pulls.known(Request(KEYED, STRICTLY))
    assert lookup is not None
    do(service, "DROP TABLE u;")
    assert service.pulls.answers([lookup]) == [None]


def test_plans_are_bounded(tables: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.sql.server.pulling.MOST_PLANS", 10)
    for at in range(40):
        outcome(tables, f"SELECT name AS c{at} FROM u WHERE name = 'ann';")
    assert len(tables.pulls._seen) <= 11


def test_access_is_checked_for_each_query(tables: Service) -> None:
    def refuse(uses: Any) -> None:
        raise ServerError(40300, f"no {sorted(uses)}")

    repeated(tables, KEYED)
    request = Request(KEYED, STRICTLY)
    request.access = refuse
    with pytest.raises(ServerError, match=r"no \['U'\]"):
        tables.query(request)


# Lookups together


def test_lookups_that_come_together_ask_once_for_the_end(tables: Service) -> None:
    service = tables
    names = ["ann", "bob", "it''s", "5"] * 2
    texts = [f"SELECT * FROM u WHERE name = '{name}';" for name in names]
    expected = [rows for _, rows in repeated(service, *texts)]

    async def ask() -> list[Any]:
        together, lookups = (
            Together(service.pulls.answers, "test"),
            [service.pulls.known(Request(text, STRICTLY)) for text in texts],
        )
        return list(await asyncio.gather(*(together.answer(one) for one in lookups if one is not None)))

    Counting.asked = 0
    answers = asyncio.run(ask())
    assert [[row.columns for row in answer.poll()] for answer in answers] == expected and Counting.asked == 1


def test_failure_reaches_every_lookup(tables: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(topic: str) -> Positions:
        raise OSError("no broker")

    repeated(tables, KEYED)
    lookup = tables.pulls.known(Request(KEYED, STRICTLY))
    assert lookup is not None
    monkeypatch.setattr(tables.topics, "ends", fail)

    async def ask() -> list[Any]:
        together = Together(tables.pulls.answers, "test")
        return list(await asyncio.gather(*(together.answer(lookup) for _ in range(3)), return_exceptions=True))

    assert [str(error) for error in asyncio.run(ask())] == ["no broker"] * 3


def test_table_that_is_read_does_not_stop_other_requests(tables: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on, read = threading.Event(), threading.Event(), tables.topics.read

    def patient(topic: str, positions: Positions) -> list[Any]:
        if topic == "N":
            reading.set()
            assert go_on.wait(WAIT_S)
        return read(topic, positions)

    monkeypatch.setattr(tables.topics, "read", patient)
    found: list[Any] = []
    slow = threading.Thread(target=lambda: found.append(outcome(tables, "SELECT id FROM n WHERE id = 5;")), daemon=True)
    slow.start()
    assert reading.wait(WAIT_S)
    for _ in range(4):
        assert outcome(tables, KEYED)[1] == [["ann", 0, "town0"]]
    do(tables, "CREATE TYPE t AS INT;")
    assert not found  # all this was answered meanwhile
    go_on.set()
    slow.join(WAIT_S)
    assert found[0][1] == [[5]]


# Lag


def test_view_that_is_too_far_behind_is_refused_and_read_meanwhile(service: Service) -> None:
    service.topics.create("t", 1, 1, {})
    do(service, "CREATE SOURCE TABLE t (id STRING PRIMARY KEY, x INT)", _at("t"))
    service.topics.append([Produced("t", None, b"k", b'{"X":%d}' % number, 0) for number in range(5)])
    for text in ("SELECT x FROM t WHERE id = 'k';", "SELECT SUM(x) AS x FROM t;"):  # the other one is DuckDB's
        service.pulls.views.clear()
        refused = outcome(service, text, **FULL, **{MOST_LAG: 3})
        assert refused["error_code"] == 40001 and refused["message"] == (
            "Unable to execute pull query. [Partition 0 failed to find valid host. Hosts scanned: [localhost:8088 was "
            "not selected because Host excluded because lag 5 exceeds maximum allowed lag 3.]]"
        )
        settle(service)
        for _ in range(3):
            assert outcome(service, text, **FULL, **{MOST_LAG: 3})[1] == [[4]]
        service.topics.append([Produced("t", None, b"k", b'{"X":4}', 0) for _ in range(4)])
        assert "lag 4 exceeds" in outcome(service, text, **FULL, **{MOST_LAG: "3"})["message"]
        assert outcome(service, text, **FULL, **{MOST_LAG: 4})[1] == outcome(service, text, **FULL)[1] == [[4]]
        service.topics.append([Produced("t", None, b"k", b'{"X":4}', 0)])
        assert outcome(service, text, **FULL, **{MOST_LAG: -1})[1] == [[4]]
        service.topics.delete("t")
        service.topics.append([Produced("t", None, b"k", b'{"X":%d}' % number, 0) for number in range(5)])
    assert "Not a number" in outcome(service, "SELECT x FROM t;", **{MOST_LAG: "few"})["message"]


def test_lowest_position_of_each_partition() -> None:
    assert lowest([{"a": {0: 5, 1: 2}}, {"a": {0: 3}, "b": {0: 1}}]) == {"a": {0: 3, 1: 2}, "b": {0: 1}}


# Columns


def test_columns_follow_the_rows(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are added to the columns that are there; they are those of a view that is made anew."""
    monkeypatch.setattr(materialized, "MOST_CHANGES", 20)
    topics, chance = service.topics, random.Random(3)
    topics.create("t", 2, 1, {})
    do(service, "CREATE SOURCE TABLE t (id STRING PRIMARY KEY, x INT, l ARRAY<INT>)", _at("t"))
    source = service.engine.catalogue.source("T")
    made: list[Any] = []
    for number in range(60):
        for _ in range(chance.randrange(12)):
            value = None if chance.random() < 0.3 else b'{"X":%d,"L":[%d,null]}' % (number, number)
            topics.append([Produced("t", None, b"k%d" % chance.randrange(40), value, number)])
        with service.pulls.up_to_date(source) as view:
            found = columns_of(view)
        if not made or made[-1] is not view.columns.made:
            made.append(view.columns.made)
        anew = View(source, None)
        anew.catch_up(topics, topics.ends("t"))
        order: Callable[[dict[str, Any]], str] = lambda row: row["ID"]  # noqa: E731
        assert sorted(found.to_pylist(), key=order) == sorted(columns_of(anew).to_pylist(), key=order)
    assert 1 < len(made) < 60  # it was made anew now and then, and changed otherwise


def _at(topic: str) -> str:
    return f"WITH (kafka_topic='{topic}', value_format='JSON');"

"""Queries in columns do what they do record by record: all our cases, and what columns must not change.

On Spark a batch of a query goes through its steps in columns, if each step can take them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.operators.errors import StreamsError
from moldau.operators.record import Produced, Raw
from moldau.plan.columns import InColumns
from moldau.plan.levels import ShardId
from moldau.serdes.context import SerdeError
from moldau.sql.cases.files import Case, read_file
from moldau.sql.cases.running import queries_of, records_of
from moldau.sql.engine import Engine
from moldau.sql.functions import cases as case_functions
from moldau.sql.lowering import build
from moldau.sql.plan_json import encoded
from moldau.sql.steps import QueryPlan
from moldau.streams import StreamsBuilder, TopologyError
from tests.plan.in_memory import Conveyor, Watched
from tests.spark.sql_cases import read_by

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
SOURCES = (
    "CREATE STREAM pay (card STRING KEY, amount INT, shop STRING) WITH (kafka_topic='pay', value_format='JSON');"
    "CREATE TABLE card (card STRING PRIMARY KEY, town STRING) WITH (kafka_topic='card', value_format='JSON');"
)
# What goes in columns: without it, a change that makes them go record by record would only be slow.
IN_COLUMNS = {
    "filter": "CREATE STREAM made AS SELECT card, UCASE(shop) AS s, ROWOFFSET AS o FROM pay WHERE amount > 3;",
    "group": "CREATE TABLE made AS SELECT card, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a FROM pay "
    "GROUP BY card;",
    "regroup": "CREATE TABLE made AS SELECT shop, MAX(amount) AS m FROM pay GROUP BY shop;",
    "window": "CREATE TABLE made AS SELECT card, COUNT(*) AS n FROM pay WINDOW TUMBLING (SIZE 5 SECONDS) "
    "GROUP BY card;",
    "join": "CREATE STREAM made AS SELECT p.card AS card, p.amount, c.town, c.ROWTIME AS t FROM pay p "
    "LEFT JOIN card c ON p.card = c.card;",
    "table": "CREATE TABLE made AS SELECT card, UCASE(town) AS town FROM card;",
    "explode": "CREATE STREAM made AS SELECT card, EXPLODE(SPLIT(shop, 'o')) AS part FROM pay;",
}


class Readable(Watched):
    """Fallbacks that forget what cannot be read: it is in no lane's way, its batch goes record by record."""

    def fell_back(self, start: str, shard: ShardId, error: Exception | None) -> None:
        super().fell_back(start, shard, error)
        self.errors = [one for one in self.errors if not isinstance(one, SerdeError)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether batches were taken in columns."""
    found: list[bool] = []
    take: Callable[..., object] = InColumns.take

    def watched(self: InColumns, *given: Any) -> object:
        done = take(self, *given)
        found.append(done is not None)
        return done

    monkeypatch.setattr(InColumns, "take", watched)
    return found


def conveyor(builder: StreamsBuilder, topics: list[str], in_rows: bool) -> Conveyor:
    made = Conveyor(builder, dict.fromkeys(topics, 1), {}, logged=True, in_rows=in_rows)
    made.fallbacks = Readable(in_rows)
    return made


def same(plan: QueryPlan, records: list[Produced], seed: str, registry: Any = None) -> list[Produced]:
    """Process records in batches of any size, in columns and one by one; return what is written."""
    topics = sorted(read_by(encoded(plan.step)))
    one, other = (conveyor(build(plan, registry), topics, in_rows) for in_rows in (False, True))
    chance, offsets, waiting = random.Random(seed), Counter[str](), records[:]
    while waiting:
        size = chance.randint(1, 8)
        batch = [raw(record, offsets) for record in waiting[:size] if record.topic in topics]
        del waiting[:size]
        for each in (one, other):
            each.batch(batch)
        assert one.written() == other.written()
    assert one.outputs == other.outputs
    return [record for some in other.outputs.values() for record in some]


def raw(record: Produced, offsets: Counter[str]) -> Raw:
    offsets[record.topic] += 1
    at = offsets[record.topic] - 1
    return Raw(record.topic, 0, at, record.key, record.value, record.timestamp, record.headers)


def compare(case: Case) -> bool:
    """Compare all queries of a case; return whether there were any."""
    plans, registry = queries_of(case)
    there = records_of(case) * 2  # the second time all keys are known
    compared = False
    for plan in plans:
        try:
            there += same(plan, there, case.name, registry)
        except TopologyError:
            continue  # it cannot run on Spark
        compared = True
    return compared


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_cases_in_columns_give_what_they_give_record_by_record(file: Path) -> None:
    case_functions.install()
    try:
        positive = [case for case in read_file(file) if case.expected is None]
        compared = [compare(case) for case in positive]
        assert any(compared) or not positive
    finally:
        case_functions.uninstall()


def planned(text: str) -> QueryPlan:
    engine = Engine()
    engine.execute_text(SOURCES + text)
    return list(engine.queries.values())[-1]


def given(count: int) -> list[Produced]:
    """Payments and cards, with tombstones, without keys, with other spellings, and some that cannot be read."""
    chance, made = random.Random(count), list[Produced]()
    for number in range(count):
        key = chance.choice([b"a", b"b", b"c", None])
        time = 1000 * number + chance.choice([0, 0, -7000])
        pay: dict[str, Any] = {
            "amount": chance.choice([1, 7, "3", None, 2**31]),
            "shop": chance.choice(["oslo", "rom"]),
        }
        if chance.random() < 0.3:
            pay = {name.upper(): value for name, value in pay.items()}
        value = chance.choice([json.dumps(pay), json.dumps(pay, indent=1)]).encode()
        made.append(Produced("pay", 0, key, None if chance.random() < 0.1 else value, max(0, time)))
        town = chance.choice([b'{"town":"x"}', b'{"TOWN":"y","town":"z"}', b"{}", None])
        made.append(Produced("card", 0, key, town, max(0, time)))
    return made


@pytest.mark.parametrize("name", IN_COLUMNS)
def test_common_queries_are_taken_in_columns(name: str, taken: list[bool]) -> None:
    plan = planned(IN_COLUMNS[name])
    assert same(plan, given(60), name)
    assert any(taken), "everything was processed record by record"


def test_half_unreadable_records_give_the_same(taken: list[bool]) -> None:
    records = [one if at % 2 else one._replace(value=b'{"amount": }') for at, one in enumerate(given(40))]
    assert same(planned(IN_COLUMNS["group"]), records, "unreadable")


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "MAP<STRING, INT>", "DECIMAL(4, 2)"])
def test_state_that_is_not_the_same_after_reading_goes_record_by_record(kind: str, taken: list[bool]) -> None:
    """COLLECT_LIST adds to a list in place: in columns all its results would be the last one."""
    text = f"CREATE TABLE kept (id STRING PRIMARY KEY, v {kind}) WITH (kafka_topic='kept', value_format='JSON');"
    plan = planned(text + "CREATE TABLE made AS SELECT * FROM kept;")
    value = {"ARRAY<INT>": b"[1]", "MAP<STRING, INT>": b'{"a":1}'}.get(kind, b"1.5")
    assert same(plan, [Produced("kept", 0, b"a", b'{"v":%s}' % value, 1)], kind)
    assert not taken


def test_a_key_that_cannot_be_stored_fails_as_it_does_alone() -> None:
    text = "CREATE TABLE t (id STRING PRIMARY KEY, v INT) WITH (kafka_topic='t', format='JSON');"
    plan = planned(text + "CREATE TABLE made AS SELECT * FROM t;")
    records = [Raw("t", 0, 0, b'"a"', b'{"v":1}', 1), Raw("t", 0, 1, b"null", b'{"v":1}', 1)]
    for in_rows in (False, True):
        with pytest.raises(StreamsError, match="must not be None"):
            conveyor(build(plan), ["t"], in_rows).batch(records)

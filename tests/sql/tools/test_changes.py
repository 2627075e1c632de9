"""What a file of statements would change: decided on an engine, without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.sql.engine import Engine
from moldau.sql.tools.changes import Change, changes

PAY = "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON', partitions=2);"
BIG = "CREATE STREAM big AS SELECT card, amount FROM pay WHERE amount > 100 EMIT CHANGES;"
SPEND = "CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card EMIT CHANGES;"


def engine() -> Engine:
    made = Engine()
    made.execute_text(PAY + BIG + SPEND + "CREATE STREAM huge AS SELECT * FROM big WHERE amount > 9000;")
    return made


def one(text: str) -> Change:
    (found,) = changes(text, engine())
    return found


@pytest.mark.parametrize("text", [PAY, BIG.lower().replace("where", "\n WHERE"), SPEND, PAY + BIG + SPEND])
def test_what_is_there_stays(text: str) -> None:
    assert {found.action for found in changes(text, engine())} == {"unchanged"}
    assert not any(found.text for found in changes(text, engine()))


def test_new_query_is_created_with_its_topics() -> None:
    found = one("CREATE STREAM small AS SELECT * FROM pay WHERE amount < 5;")
    assert (found.action, found.what, found.reads, found.writes) == ("create", "STREAM SMALL", ("pay",), "SMALL")
    assert found.query == "CSAS_SMALL_3" and found.text.startswith("CREATE STREAM small")


def test_changed_filter_is_replaced_and_its_readers_are_named() -> None:
    found = one(BIG.replace("100", "200"))
    assert (found.action, found.query, found.readers) == ("replace", "CSAS_BIG_0", ("CSAS_HUGE_2",))
    assert found.text.startswith("CREATE OR REPLACE STREAM") and found.state == "none is kept"
    assert "200" in found.text and found.text.endswith(";")


def test_state_survives_or_is_read_again() -> None:
    same = one(SPEND.replace("FROM pay", "FROM pay WHERE amount > 1"))
    assert same.action == "replace" and same.state.startswith("state that survives: Aggregate-Aggregate-Materialize")
    more = one(SPEND.replace("AS total", "AS total, MAX(amount) AS most"))
    assert more.action == "replace" and more.state == "read again: Aggregate-Aggregate-Materialize gets other columns"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SPEND.replace("card, SUM", "amount, SUM").replace("BY card", "BY amount"), "Key columns must be identical"),
        (PAY.replace("amount INT", "amount STRING"), "changed, missing or reordered"),
        (PAY.replace("kafka_topic='pay'", "kafka_topic='other'"), "topic = pay which is not upgradeable"),
        (BIG.replace("amount > 100", "amont > 100"), "AMONT"),
        ("CREATE STREAM spend AS SELECT * FROM pay;", "not upgradeable"),
        ("INSERT INTO pay VALUES ('a', 1);", "moldau sql run"),
        ("SHOW STREAMS;", "Only definitions"),
        ("DROP STREAM pay;", "streams and/or tables read from this source"),
        ("CREATE TABLE big AS SELECT card, COUNT(*) AS n FROM pay GROUP BY card;", "not upgradeable"),
    ],
)
def test_what_cannot_be_is_refused_with_its_rule(text: str, reason: str) -> None:
    found = one(text)
    assert found.action == "refused" and reason in found.reason and not found.text


def test_statements_build_on_each_other() -> None:
    text = """
        DEFINE least = '7';
        SET 'auto.offset.reset' = 'earliest';
        CREATE TYPE money AS DECIMAL(9, 2);
        CREATE STREAM a AS SELECT card, amount FROM pay WHERE amount > ${least};
        CREATE STREAM b AS SELECT * FROM a;
        UNSET 'auto.offset.reset';
        INSERT INTO a SELECT card, amount FROM big;
        DROP STREAM huge DELETE TOPIC;
    """
    found = changes(text, engine())
    assert [(one.action, one.what) for one in found] == [
        ("create", "TYPE MONEY"),
        ("create", "STREAM A"),
        ("create", "STREAM B"),
        ("create", "INSERT INTO A"),
        ("drop", "STREAM HUGE"),
    ]
    assert "amount > 7" in found[1].text and found[1].settings == {"auto.offset.reset": "earliest"}
    assert found[3].settings == {} and found[3].readers == ("CSAS_B_4",)
    assert found[4].writes == "HUGE" and "CSAS_HUGE_2" in found[4].state


@pytest.mark.parametrize(
    ("runtime", "settings", "action", "said"),
    [
        ("local", "", "replace", "built anew from the records since the query began"),
        ("spark", "", "refused", "CREATE OR REPLACE cannot change the aggregate functions of a query on Spark"),
        ("local", "SET 'ksql.runtime'='spark';", "refused", "runs with ksql.runtime=local, and cannot change that"),
    ],
)
def test_added_aggregate_is_judged_by_the_runtime(runtime: str, settings: str, action: str, said: str) -> None:
    known = engine()
    known.queries["CTAS_SPEND_1"] = replace(known.queries["CTAS_SPEND_1"], settings={"ksql.runtime": runtime})
    (found,) = changes(settings + SPEND.replace("AS total", "AS total, MAX(amount) AS most"), known)
    assert found.action == action and said in found.state + found.reason

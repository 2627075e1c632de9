"""Which topics a statement reads, writes and deletes."""

from __future__ import annotations

import pytest

from moldau.sql.engine import Engine
from moldau.sql.parser import parse
from moldau.sql.server.access import DELETE, READ, WRITE, uses_of

SOURCES = """
CREATE STREAM s (k STRING KEY, a INT) WITH (KAFKA_TOPIC='of-s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE t (k STRING PRIMARY KEY, b INT) WITH (KAFKA_TOPIC='of-t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE VIEW v AS SELECT * FROM s WHERE a > 1;
CREATE VIEW w AS SELECT * FROM v;
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine()
    for statement in parse(SOURCES):
        made.execute(statement)
    return made


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("SELECT * FROM s EMIT CHANGES;", {"of-s": {READ}}),
        ("SELECT * FROM nowhere;", {}),
        ("CREATE STREAM x AS SELECT * FROM s;", {"of-s": {READ}, "X": {WRITE}}),
        (
            "CREATE STREAM x WITH (KAFKA_TOPIC='of-t') AS SELECT s.k, a, b FROM s JOIN t ON s.k = t.k;",
            {"of-s": {READ}, "of-t": {READ, WRITE}},
        ),
        ("INSERT INTO s SELECT * FROM s;", {"of-s": {READ, WRITE}}),
        ("INSERT INTO s (k, a) VALUES ('x', 1);", {"of-s": {WRITE}}),
        ("DELETE FROM t WHERE k = 'x';", {"of-t": {WRITE}}),
        ("SELECT * FROM w EMIT CHANGES;", {"of-s": {READ}}),
        ("CREATE STREAM x AS SELECT k, a FROM s UNION ALL SELECT k, a FROM v;", {"of-s": {READ}, "X": {WRITE}}),
        ("CREATE VIEW z AS SELECT * FROM v;", {"of-s": {READ}}),
        ("SELECT * FROM (SELECT * FROM s) t EMIT CHANGES;", {"of-s": {READ}}),
        ("WITH t AS (SELECT * FROM (SELECT * FROM w) x) SELECT * FROM t EMIT CHANGES;", {"of-s": {READ}}),
        ("PRINT 'anything';", {"anything": {READ}}),
        ("CREATE STREAM y (a INT) WITH (KAFKA_TOPIC='of-y', VALUE_FORMAT='JSON');", {"of-y": {READ}}),
        ("DROP STREAM s DELETE TOPIC;", {"of-s": {DELETE}}),
        ("DROP STREAM s;", {}),
        ("SHOW STREAMS;", {}),
        ("EXPLAIN SELECT * FROM s EMIT CHANGES;", {"of-s": {READ}}),
    ],
)
def test_a_statement_uses_topics(engine: Engine, text: str, uses: dict[str, set[int]]) -> None:
    assert uses_of(parse(text)[0], engine.catalogue) == uses

"""The parser and the printer: what is printed is read as the same tree, and what is wrong is refused with its place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.sql import tree
from moldau.sql.errors import ParseError
from moldau.sql.lexer import MAX_STATEMENT, RESERVED
from moldau.sql.parser import MAX_DEPTH, parse, parse_expression
from moldau.sql.printer import expression_text, statement_text
from moldau.sql.tree import Call, Column, Expression, Literal

STATEMENTS = """
    SELECT * FROM a;
    SELECT a.*, b->*, c AS d, e f FROM a b WHERE x = 1 EMIT CHANGES LIMIT 3;
    CREATE STREAM IF NOT EXISTS s (k INT KEY, v ARRAY<STRUCT<a MAP<STRING, DECIMAL(3,1)>>>, h BYTES HEADER('x'));
    CREATE OR REPLACE SOURCE TABLE t (`k` my_type PRIMARY KEY) WITH (kafka_topic='x', partitions=3, a=true, b=-1.5);
    CREATE TABLE t WITH (format='JSON') AS SELECT x, COUNT(*) FROM s WINDOW HOPPING (SIZE 5 MINUTES, ADVANCE BY
        1 MINUTE, RETENTION 1 DAY, GRACE PERIOD 0 SECONDS) GROUP BY x, y HAVING COUNT(*) > 1 EMIT FINAL;
    CREATE STREAM j AS SELECT * FROM a LEFT OUTER JOIN b WITHIN (1 SECOND, 2 HOURS) GRACE PERIOD 3 DAYS ON a.x = b.y
        FULL JOIN c ON a.x = c.z PARTITION BY (a.x, b.y);
    CREATE TABLE w AS SELECT x, SUM(y) FROM s WINDOW SESSION (30 SECONDS) GROUP BY (x);
    INSERT INTO s WITH (query_id='q') SELECT * FROM a;
    INSERT INTO s (a, b) VALUES (1, ARRAY[1, NULL]);
    INSERT INTO s VALUES ('it''s', STRUCT(a := 1), MAP('k' := 2), DATE '2020-01-01');
    DROP STREAM IF EXISTS s DELETE TOPIC;
    CREATE TYPE IF NOT EXISTS address AS STRUCT<street STRING, number INT>;
    DROP TYPE IF EXISTS address;
    ALTER STREAM s ADD COLUMN a INT, ADD b STRING;
    ALTER SYSTEM 'ksql.x'='y';
    SET 'auto.offset.reset'='earliest';
    UNSET 'auto.offset.reset';
    DEFINE a = 'b';
    UNDEFINE a;
    SHOW ALL TOPICS EXTENDED;
    LIST SOURCE CONNECTORS;
    SHOW CONNECTOR PLUGINS;
    DESCRIBE s EXTENDED;
    DESCRIBE FUNCTION len;
    DESCRIBE TABLES EXTENDED;
    PRINT 'topic' FROM BEGINNING INTERVAL 2 LIMIT 3;
    TERMINATE ALL;
    PAUSE q_1;
    EXPLAIN q_1;
    EXPLAIN SELECT * FROM a;
    CREATE SINK CONNECTOR IF NOT EXISTS c WITH ('connector.class'='x');
    DROP CONNECTOR IF EXISTS c;
    ASSERT NOT EXISTS TOPIC 't' WITH (partitions=1) TIMEOUT 3 SECONDS;
    ASSERT SCHEMA SUBJECT 's' ID 3;
"""
TESTING = """
    ASSERT VALUES s (a, b) VALUES (1, 'x');
    ASSERT NULL VALUES t (k) KEY (1);
    ASSERT STREAM s (a INT) WITH (kafka_topic='x');
    RUN SCRIPT 'file.sql';
"""


@pytest.mark.parametrize("statement", [*parse(STATEMENTS), *parse(TESTING, testing=True)], ids=lambda s: s.text[:40])
def test_statement_is_printed_and_read_as_the_same(statement: tree.Statement) -> None:
    printed = statement_text(statement)
    (again,) = parse(printed, testing=True)
    assert again == statement
    assert statement_text(again) == printed


EXPRESSIONS = {
    "a + b * c": "(A + (B * C))",
    "(a + b) * -c % 2": "(((A + B) * -C) % 2)",
    "a - -1": "(A - -1)",
    "-(-0)[a]": "-(0[A])",
    "NOT a = 1 AND b OR c": "(((NOT (A = 1)) AND B) OR C)",
    "a NOT BETWEEN 1 AND 2 + 3": "(NOT (A BETWEEN 1 AND (2 + 3)))",
    "a NOT IN (1, 2.50) ": "(NOT (A IN (1, 2.50)))",
    "a LIKE '%!%' ESCAPE '!'": "(A LIKE '%!%' ESCAPE '!')",
    "a IS NOT NULL": "(A IS NOT NULL)",
    "a IS DISTINCT FROM b": "(A IS DISTINCT FROM B)",
    "a != b": "(A <> B)",
    "a || 'x' || b": "CONCAT(CONCAT(A, 'x'), B)",
    "CASE WHEN a THEN 1 ELSE 2 END": "(CASE WHEN A THEN 1 ELSE 2 END)",
    "CASE a WHEN 1 THEN 'x' END": "(CASE A WHEN 1 THEN 'x' END)",
    "CAST(a AS DECIMAL(3, 1) ARRAY)": "CAST(A AS ARRAY<DECIMAL(3, 1)>)",
    "s.a->b[1]->`c d`": "S.A->B[1]->`c d`",
    "count(*)": "COUNT(*)",
    "TRANSFORM(m, (k, v) => UCASE(k), (k, v) => v + x)": "TRANSFORM(M, (K, V) => UCASE(K), (K, V) => (V + X))",
    "DATEADD(days, 2, day)": "DATEADD(DAYS, 2, DAY)",
    "1e3": "1E3",
    "2147483648": "2147483648",
    "`select`": "`select`",
    '"SELECT"': "`SELECT`",
    "1abc + _x@y": "(1ABC + _X@Y)",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_is_printed_as_ksqldb_does(text: str) -> None:
    assert expression_text(parse_expression(text)) == EXPRESSIONS[text]


def test_lambda_variables_are_told_from_columns() -> None:
    call = parse_expression("FILTER(xs, x => x > y)")
    assert isinstance(call, Call)
    body = call.args[1]
    assert isinstance(body, tree.Lambda)
    assert body.body == tree.Compare(">", tree.LambdaVariable("X"), Column("Y"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("1", "INTEGER"), ("-2147483649", "BIGINT"), ("1.0", "DECIMAL"), ("1E0", "DOUBLE"), ("TRUE", "BOOLEAN")],
)
def test_literal_has_the_type_of_its_form(text: str, kind: str) -> None:
    value = parse_expression(text)
    assert isinstance(value, Literal)
    assert value.kind == kind


REFUSED = {
    "SELECT FROM a;": 'line 1:8: Syntax Error\n"FROM" is a reserved keyword',
    "SELECT a\nFROM b WHERE;": "line 2:13: Syntax Error",
    "SELECT 'a FROM b;": "line 1:8: Syntax Error",
    "SELECT 9223372036854775808 FROM a;": "Invalid numeric literal: 9223372036854775808",
    "SELECT a FROM b ESCAPE;;SELECT a FROM b x y": "Syntax Error",
    "CREATE TABLE t (a DECIMAL(3, 4));": "DECIMAL precision must be >= scale: DECIMAL(3,4)",
    "SELECT a FROM b LIMIT x;": "Expecting INTEGER_VALUE",
    "SELECT a LIKE 'x' ESCAPE 'ab' FROM b;": "Expected single character escape but got: ab",
    "RUN SCRIPT 'x';": "Unknown statement 'RUN'",
    "CREATE SELECT": "Expecting {'STREAM', 'TABLE'}",
    "SELECT ${x} FROM a;": "Syntax Error",
}


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_text_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert REFUSED[text] in str(caught.value)


def test_text_of_a_statement_is_what_was_written() -> None:
    first, second = parse("-- note\nSELECT a FROM b ; /* and */ select 1 from c")
    assert (first.text, second.text) == ("SELECT a FROM b ;", "select 1 from c")
    assert second.at == (2, 29)


def test_variables_are_replaced_before_parsing() -> None:
    (statement,) = parse("SELECT '${a}', '$${a}', '${b}' FROM ${t};", {"A": "x", "T": "s"})
    assert statement_text(statement) == "SELECT\n  'x',\n  '${a}',\n  '${b}'\nFROM S S;"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 500 + "1" + ")" * 500,
        "CASE WHEN TRUE THEN " * 500 + "1" + " END" * 500,
        "NOT " * 500 + "TRUE",
        "- " * 500 + "a",
        "ARRAY[" * 500 + "1" + "]" * 500,
        " + ".join(["a"] * 500),
        "a" + "->b" * 500,
        "CAST(a AS " + "ARRAY<" * 500 + "INT" + ">" * 500 + ")",
    ],
    ids=["brackets", "cases", "nots", "signs", "arrays", "sum", "fields", "types"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=f"more than {MAX_DEPTH} levels deep"):
        parse(f"SELECT {text} FROM s;")


def test_what_is_nested_a_little_is_read_and_printed() -> None:
    for text in ("(" * 90 + "1" + ")" * 90, " + ".join(["a"] * 90)):
        expression = parse_expression(text)
        assert parse_expression(expression_text(expression)) == expression


def test_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ParseError, match="at most 1048576 are allowed"):
        parse("SELECT '" + "x" * MAX_STATEMENT + "' FROM s;")


names = st.text('abcXYZ_ `"1', min_size=1, max_size=5) | st.sampled_from(sorted(RESERVED))
literals = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1).map(
        lambda n: Literal(n, "INTEGER" if -(1 << 31) <= n < 1 << 31 else "BIGINT")
    ),
    st.text(max_size=8).map(lambda text: Literal(text, "STRING")),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda d: Literal(Decimal(f"{d:f}"), "DECIMAL")),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda f: Literal(f, "DOUBLE")),
    st.booleans().map(lambda b: Literal(b, "BOOLEAN")),
    st.just(Literal(None, "NULL")),
)
leaves: st.SearchStrategy[Expression] = literals | st.builds(Column, names, st.none() | names)


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(tree.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(tree.Logical, st.sampled_from(["AND", "OR"]), inner, inner),
        st.builds(tree.Compare, st.sampled_from(["=", "<>", "<", "IS DISTINCT FROM"]), inner, inner),
        st.builds(tree.Not, inner),
        st.builds(tree.Sign, st.sampled_from("+-"), inner),
        st.builds(tree.Between, inner, inner, inner),
        st.builds(tree.In, inner, some),
        st.builds(tree.Like, inner, inner, st.none() | st.sampled_from("!'")),
        st.builds(tree.IsNull, inner, st.booleans()),
        st.builds(Call, st.sampled_from(["LEN", "REPLACE", "F_1"]), some),
        st.builds(
            tree.Cast, inner, st.sampled_from([tree.STRING, tree.DecimalType(3, 1), tree.ArrayType(tree.BIGINT)])
        ),
        st.builds(tree.Deref, inner, names),
        st.builds(tree.Subscript, inner, inner),
        st.builds(tree.MakeArray, some),
        st.builds(tree.MakeStruct, st.lists(st.tuples(names, inner), min_size=1, max_size=2).map(tuple)),
        st.builds(tree.Case, st.none() | inner, st.tuples(st.builds(tree.When, inner, inner)), st.none() | inner),
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(leaves, larger, max_leaves=12))
def test_any_expression_is_printed_and_read_as_the_same(expression: Expression) -> None:
    text = expression_text(expression)
    again = parse_expression(text)
    assert again == expression, text

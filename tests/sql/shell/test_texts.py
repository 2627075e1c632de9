"""What the shell does with texts: splitting, tables that fit, completion, faults. No server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.cli.ksql.terminal import is_complete
from moldau.sql.shell import entities, faults
from moldau.sql.shell.completing import complete
from moldau.sql.shell.names import KnownSource, Names, known_signatures
from moldau.sql.shell.statements import column_names, is_query, placed, split, words
from moldau.sql.shell.tables import Grid, listing, width_of, wrap

FEW = settings(max_examples=40, deadline=None)  # nothing is said about time: other tests run beside
NAMES = Names(
    sources={
        "PAYMENTS": KnownSource("STREAM", {"CARD": "STRING", "AMOUNT": "INTEGER", "lower": "STRING"}),
        "CARDS": KnownSource("TABLE", {"CARD": "STRING", "OWNER": "STRING"}),
    },
    functions={name: known_signatures(name) for name in ("SUBSTRING", "SUM", "SQRT")} | {"MINE": []},
    topics=["pay-in", "orders"],
    queries=["CTAS_SPEND_3"],
)


def texts(before: str, after: str = "") -> list[str]:
    return [one.text for one in complete(before, after, NAMES, ["help", "exit"])]


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("a; b;", ["a", "b"], ""),
        ("select ';' from x; show", ["select ';' from x"], "show"),
        ("-- a; comment\nb /* ; */ c;", ["-- a; comment\nb /* ; */ c"], ""),
        ("`a;b`; 'open ;", ["`a;b`"], "'open ;"),
        (" ;; \n-- nothing\n", [], ""),
    ],
)
def test_text_is_split_at_semicolons(text: str, statements: list[str], rest: str) -> None:
    assert split(text) == (statements, rest)


def test_statements_keep_their_place() -> None:
    pieces = list(placed("show types; -- one\n  drop type x;\n;\nset 'a;b' = 'c'"))
    assert [(piece.count("\n"), piece.split("\n")[-1].strip()) for piece in pieces] == [
        (0, "show types;"),
        (1, "drop type x;"),
        (3, "set 'a;b' = 'c'"),
    ]
    assert pieces[1].startswith(" " * len("show types;") + " -- one")


def test_first_words_tell_what_a_statement_is() -> None:
    assert words("/* a */ run Script 'x'") == ["RUN", "SCRIPT", "'X'"]
    assert is_query("-- now\nselect 1") and is_query("PRINT 'x'") and not is_query("SHOW STREAMS")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("show streams", False),
        ("show\nstreams;", True),
        ("help", True),
        ("help me", False),
        ("SET CLI WRAP OFF", True),
        ("output json", True),
        ("set 'a'='b'", False),
        ("select ';", False),
        ("", True),
    ],
)
def test_enter_executes_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_names_of_columns_are_read_from_a_schema() -> None:
    assert column_names("`ID` STRING KEY, `V` STRUCT<`A` INTEGER, `B` DECIMAL(4, 2)>, `x``y` BIGINT") == [
        "ID",
        "V",
        "x`y",
    ]


@FEW
@given(st.text(max_size=200), st.integers(2, 40))
def test_wrapped_text_fits_and_loses_nothing_but_blanks(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(width_of(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@FEW
@given(st.lists(st.lists(st.text(max_size=60), min_size=3, max_size=3), max_size=5), st.integers(40, 120))
def test_listing_fits_the_terminal(rows: list[list[str]], width: int) -> None:
    assert all(width_of(line) <= width for line in listing(["Name", "Kafka Topic", "Query String"], rows, width))


def test_functions_are_listed_by_category() -> None:
    rows = [{"name": name, "category": category} for name, category in (("ABS", "MATHEMATICAL"), ("SLICE", "ARRAY"))]
    found = list(entities.lines({"@type": "function_names", "functions": rows}))
    assert [line.split() for line in found if line.startswith((" ABS", " SLICE"))] == [
        ["SLICE", "|", "ARRAY"],
        ["ABS", "|", "MATHEMATICAL"],
    ]


def test_listing_has_the_form_of_ksqldb() -> None:
    assert list(listing(["Stream Name", "Windowed"], [["PAY", "false"]])) == [
        " Stream Name | Windowed",
        "-------------------------",
        " PAY         | false   ",
        "-------------------------",
    ]


def test_rows_share_the_width_and_wrap_or_are_clipped() -> None:
    grid = Grid(["ID", "V"], 25)
    assert list(grid.head()) == ["+-----------+-----------+", "|ID         |V          |", "+-----------+-----------+"]
    assert list(grid.row([1, "a value too long"])) == ["|1          |a value too|", "|           |long       |"]
    assert list(Grid(["V"], 25, 8, False).row(["a value\x1b[31m"])) == ["|a val...|"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(Grid(["V"], 80).row(["\x1b[2J"]))


@pytest.mark.parametrize(
    ("entity", "line"),
    [
        ({"@type": "currentStatus", "commandStatus": {"message": "Stream created"}}, " Stream created"),
        ({"@type": "assert_topic", "topicName": "t", "exists": True}, " Topic t exists"),
        ({"@type": "assert_schema", "subject": "s", "id": 3, "exists": False}, " Schema with subject name s id 3 does"),
        ({"@type": "kafka_topics", "topics": [{"name": "t", "replicaInfo": [1, 1]}]}, " t           | 2          | 1"),
        ({"@type": "something_new", "fact": 7}, '  "fact": 7'),
        (
            {"@type": "type_list", "types": {"M": {"type": "MAP", "memberSchema": {"type": "STRING"}}}},
            " M         | MAP<",
        ),
    ],
)
def test_entity_is_written(entity: dict[str, object], line: str) -> None:
    assert any(one.startswith(line) for one in entities.lines(entity)), list(entities.lines(entity))


def test_completion_knows_sources_columns_functions_and_settings() -> None:
    assert texts("SELECT * FROM ") == ["CARDS", "PAYMENTS"]
    assert texts("select * from pay") == ["payments"]
    assert texts("SELECT am", " FROM payments") == ["amount"]
    assert texts("SELECT p.", " FROM payments p") == ["CARD", "AMOUNT", "`lower`"]
    assert texts("SELECT SU")[:2] == ["SUBSTRING(", "SUM("]
    assert texts("SET 'auto") == ["auto.offset.reset"] and texts("SET 'auto.offset.reset' = 'e") == ["earliest"]
    assert texts("TERMINATE ") == ["CTAS_SPEND_3", "ALL"] and texts("PRINT pay") == []
    assert texts("PRINT ") == ["'pay-in'", "orders"]
    assert texts("CREATE STREAM x WITH (")[0] == "KAFKA_TOPIC=" and texts("x WITH (KAFKA_TOPIC='pay") == ["pay-in"]
    assert texts("CREATE STREAM x WITH (VALUE_FORMAT='JS") == ["JSON", "JSON_SR"]
    assert "show streams" in texts("sho") and "help" in texts("he") and texts("show streams; ex") == ["explain", "exit"]
    assert texts("DROP TABLE ca") == ["cards"] and texts("INSERT INTO P") == ["PAYMENTS"]


def test_completion_shows_signatures_and_types() -> None:
    (found,) = [one for one in complete("SELECT substr", "", NAMES) if one.text == "substring("]
    assert found.remark.startswith("substring(STRING") and "->" in found.remark and found.replaces == 6
    (column,) = complete("SELECT own", " FROM cards", NAMES)
    assert column.remark == "STRING of CARDS"


@FEW
@given(st.text(max_size=60), st.text(max_size=20))
def test_completion_never_fails(before: str, after: str) -> None:
    complete(before, after, NAMES)


@pytest.mark.parametrize(
    ("text", "message", "lines"),
    [
        (
            "SELECT\n  amout FROM payments",
            "line 0: SELECT column 'AMOUT' cannot be resolved.",
            ["  amout FROM payments", "  ^^^^^", "Did you mean AMOUNT?"],
        ),
        ("CREATE STREM x", "line 1:8: Syntax Error\nExpecting", ["CREATE STREM x", "       ^^^^^"]),
        (
            "SELECT * FROM paymets",
            "Could not find STREAM/TABLE 'PAYMETS' in the Metastore",
            ["SELECT * FROM paymets", "              ^^^^^^^", "Did you mean PAYMENTS?"],
        ),
        (
            "SELECT SQR(1) FROM x",
            "Can't find any functions with the name 'SQR'",
            ["SELECT SQR(1) FROM x", "       ^^^", "Did you mean SQRT?"],
        ),
        ("SELECT 1", "line 7:1: Syntax Error", None),
        ("SELECT 1", "Something else", None),
    ],
)
def test_fault_is_underlined(text: str, message: str, lines: list[str] | None) -> None:
    fault = faults.locate(text, message, NAMES)
    assert (None if fault is None else list(faults.lines(text, fault))) == lines

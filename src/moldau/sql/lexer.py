"""The lexer: a text becomes tokens with their places.

Keywords are rows. A keyword in NON_RESERVED may be a name; any other must be quoted to be one.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from moldau.sql.errors import ParseError

Kind = Literal["name", "quoted", "string", "integer", "decimal", "float", "variable", "symbol", "end"]

MAX_STATEMENT = 1 << 20  # characters of a text of statements


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NON_RESERVED = _words("""
    SHOW TABLES COLUMNS COLUMN PARTITIONS FUNCTIONS FUNCTION SESSION STRUCT MAP ARRAY PARTITION INTEGER DATE
    TIME TIMESTAMP INTERVAL ZONE STRING YEAR MONTH DAY HOUR MINUTE SECOND EXPLAIN ANALYZE TYPE TYPES SET RESET
    IF SOURCE SINK PRIMARY KEY EMIT CHANGES FINAL ESCAPE REPLACE ASSERT ALTER ADD HEADER HEADERS GRACE PERIOD
    DEFINE UNDEFINE VARIABLES PLUGINS SYSTEM TIMEOUT SCHEMA SUBJECT ID
""")
RESERVED = _words("""
    SELECT FROM AS ALL DISTINCT WHERE WITHIN WINDOW GROUP BY HAVING LIMIT AT OR AND IN NOT EXISTS BETWEEN LIKE
    IS NULL TRUE FALSE YEARS MONTHS DAYS HOURS MINUTES SECONDS MILLISECOND MILLISECONDS TUMBLING HOPPING SIZE
    ADVANCE RETENTION CASE WHEN THEN ELSE END JOIN FULL OUTER INNER LEFT RIGHT ON WITH VALUES CREATE REGISTER
    TOPIC STREAM STREAMS TABLE INSERT INTO DELETE DESCRIBE EXTENDED PRINT CAST LIST TOPICS QUERY QUERIES
    TERMINATE LOAD DROP RENAME UNSET RUN SCRIPT DECIMAL CONNECTOR CONNECTORS NAMESPACE MATERIALIZED VIEW
    BEGINNING PROPERTIES PAUSE RESUME SAMPLE EXPORT CATALOG
""")

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<variable>\$\{[^}]*\})
    | (?P<float>(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![A-Za-z0-9_@]))
    | (?P<decimal>\d+\.\d*|\.\d+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_@]*|\d[A-Za-z0-9_@]*[A-Za-z_@][A-Za-z0-9_@]*)
    | (?P<integer>\d+)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<symbol>=>|->|:=|<>|!=|<=|>=|\|\||[-+*/%=<>()\[\],.;:])
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word of the text. `value` is the upper-case name, the unquoted text, or the symbol."""

    kind: Kind
    value: str
    raw: str
    line: int
    column: int  # from 1
    start: int
    end: int

    @property
    def reserved(self) -> bool:
        """Whether this word may only be a name in quotes."""
        return self.kind == "name" and self.value in RESERVED


def tokenize(text: str) -> list[Token]:
    """Split `text` into tokens; the last one is the end."""
    if len(text) > MAX_STATEMENT:
        raise ParseError(f"The text has {len(text)} characters, and at most {MAX_STATEMENT} are allowed.")
    tokens: list[Token] = []
    position, line, line_start = 0, 1, 0
    for match in _TOKEN.finditer(text):
        if match.start() != position:
            break  # the next token was found after something that is none
        kind: Any = match.lastgroup
        raw, end = match[0], match.end()
        if kind != "space":
            tokens.append(Token(kind, _value(kind, raw), raw, line, position - line_start + 1, position, end))
        if "\n" in raw:
            line += raw.count("\n")
            line_start = position + raw.rindex("\n") + 1
        position = end
    if position < len(text):
        column = position - line_start + 1
        raise ParseError(f"line {line}:{column}: Syntax Error\ntoken recognition error at: '{text[position]}'")
    tokens.append(Token("end", "<EOF>", "<EOF>", line, position - line_start + 1, position, position))
    return tokens


def _value(kind: str, raw: str) -> str:
    if kind == "name":
        return raw.upper()
    if kind in ("string", "quoted"):
        quote = raw[0]
        return raw[1:-1].replace(quote * 2, quote)
    return raw

"""A fuzzer of statements: made by the grammar and broken, executed without a server.

A statement may be refused by an SqlError and nothing else; what is accepted must print to a text that parses to the
same text, and its expressions must compute a row without an exception. `python -m tests.sql.fuzz 100000 [SEED]` prints
each statement that did otherwise, with the seed that makes it again.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from moldau.sql.codegen import compile_row
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.parser import parse, parse_expression
from moldau.sql.printer import expression_text, statement_text
from moldau.sql.tree import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    StructType,
    Type,
)

SOURCES = """
CREATE STREAM s (k STRING KEY, i INT, l BIGINT, d DOUBLE, n DECIMAL(6, 2), t STRING, b BOOLEAN, x BYTES, dt DATE,
  tm TIME, ts TIMESTAMP, a ARRAY<INT>, m MAP<STRING, BIGINT>, st STRUCT<f INT, g ARRAY<STRING>>)
  WITH (kafka_topic='s', value_format='JSON', partitions=1);
CREATE TABLE u (k STRING PRIMARY KEY, i INT, t STRING) WITH (kafka_topic='u', value_format='JSON', partitions=1);
"""
COLUMNS: list[tuple[str, Type]] = [
    ("K", STRING),
    ("I", INTEGER),
    ("L", BIGINT),
    ("D", DOUBLE),
    ("N", DecimalType(6, 2)),
    ("T", STRING),
    ("B", BOOLEAN),
    ("X", BYTES),
    ("DT", DATE),
    ("TM", TIME),
    ("TS", TIMESTAMP),
    ("A", ArrayType(INTEGER)),
    ("M", MapType(STRING, BIGINT)),
    ("ST", StructType((Field("F", INTEGER), Field("G", ArrayType(STRING))))),
]
ROWS: list[tuple[Any, ...]] = [
    (
        "k",
        7,
        1 << 40,
        1.5,
        Decimal("12.34"),
        "text",
        True,
        b"ab",
        18321,
        1000,
        1651182287943,
        [3, None],
        {"a": 1},
        (1, ["x"]),
    ),
    ("", -(1 << 31), -(1 << 63), float("nan"), Decimal("-9999.99"), "%(", False, b"", -1, 0, -1, [], {}, (None, None)),
    (None,) * len(COLUMNS),
]
NAMES = [name.lower() for name, _ in COLUMNS]
LITERALS = ["1", "-1", "0", "2147483648", "1.50", "1E300", "'a'", "''", "'2020-02-29'", "'%Y['", "true", "null", "DAYS"]
TYPES = ["INT", "BIGINT", "DOUBLE", "DECIMAL(4, 2)", "STRING", "BOOLEAN", "BYTES", "DATE", "TIME", "TIMESTAMP"]
TYPES += ["ARRAY<STRING>", "MAP<STRING, INT>", "STRUCT<f INT>"]
SCRAPS = [
    "(",
    ")",
    "'",
    "`",
    ",",
    ";",
    "SELECT",
    "FROM",
    "->",
    "=>",
    "[",
    "]",
    "\u0000",
    "😀",
    "--",
    "/*",
    "${v}",
    ".",
    "0x",
    "E",
]


@dataclass(slots=True)
class Maker:
    """Makes texts of one seed."""

    dice: random.Random
    deepest: int = 4

    def expression(self, depth: int = 0) -> str:
        if depth >= self.deepest or self.dice.random() < 0.25:
            return self.dice.choice(NAMES if self.dice.random() < 0.6 else LITERALS)
        return self.dice.choice(FORMS)(self, depth + 1)

    def call(self, depth: int) -> str:
        name = self.dice.choice(FUNCTIONS)
        row = self.dice.choice(REGISTRY.rows[name])
        count = len(row.signature.parameters) + self.dice.choice((0, 0, 0, 1, -1))
        return f"{name}({', '.join(self.argument(depth) for _ in range(max(0, count)))})"

    def argument(self, depth: int) -> str:
        if self.dice.random() < 0.1:
            names = self.dice.sample(["p", "q", "r"], self.dice.randint(1, 3))
            return f"({', '.join(names)}) => {self.dice.choice([*names, self.expression(depth)])}"
        return self.expression(depth)

    def pair(self, depth: int, between: str) -> str:
        return f"({self.expression(depth)} {between} {self.expression(depth)})"

    def several(self, depth: int) -> str:
        return ", ".join(self.expression(depth) for _ in range(self.dice.randint(1, 3)))

    def statement(self, number: int) -> str:
        items = ", ".join(f"{self.expression()} AS c{at}" for at in range(self.dice.randint(1, 3)))
        source = self.dice.choice(("s", "u", "s JOIN u ON s.k = u.k", "s LEFT JOIN u ON s.t = u.k"))
        rest = self.dice.choice(
            ("", f" WHERE {self.expression()}", f" PARTITION BY {self.expression()}", f" GROUP BY {self.expression()}")
        )
        window = self.dice.choice(("", "", " WINDOW TUMBLING (SIZE 1 HOUR)", " WINDOW SESSION (5 SECONDS)"))
        kind = self.dice.choice(("STREAM", "TABLE"))
        format = self.dice.choice(
            ("", " WITH (format='AVRO')", " WITH (value_format='DELIMITED')", " WITH (key_format='JSON')")
        )
        return f"CREATE {kind} o{number}{format} AS SELECT k, {items} FROM {source}{window}{rest} EMIT CHANGES;"

    def broken(self, text: str) -> str:
        """Cut, double or insert pieces of a text."""
        for _ in range(self.dice.randint(1, 3)):
            one, two = sorted(self.dice.choices(range(len(text) + 1), k=2))
            piece = self.dice.choice(("", text[one:two] * 2, self.dice.choice(SCRAPS), self.dice.choice(SCRAPS) * 50))
            text = text[:one] + piece + text[min(two, one + 12) :]
        return text


FUNCTIONS = sorted(REGISTRY.rows)
FORMS: list[Any] = [
    Maker.call,
    Maker.call,
    lambda made, depth: made.pair(depth, made.dice.choice("+-*/%")),
    lambda made, depth: made.pair(
        depth, made.dice.choice(("=", "<>", "<", ">=", "AND", "OR", "LIKE", "IS DISTINCT FROM"))
    ),
    lambda made, depth: f"CAST({made.expression(depth)} AS {made.dice.choice(TYPES)})",
    lambda made, depth: (
        f"CASE WHEN {made.expression(depth)} THEN {made.expression(depth)} ELSE {made.expression(depth)} END"
    ),
    lambda made, depth: f"({made.expression(depth)} BETWEEN {made.expression(depth)} AND {made.expression(depth)})",
    lambda made, depth: f"({made.expression(depth)} IN ({made.several(depth)}))",
    lambda made, depth: f"({made.expression(depth)} IS NOT NULL)",
    lambda made, depth: f"(NOT {made.expression(depth)})",
    lambda made, depth: f"(-{made.expression(depth)})",
    lambda made, depth: f"ARRAY[{made.several(depth)}]",
    lambda made, depth: f"MAP('a' := {made.expression(depth)}, {made.expression(depth)} := {made.expression(depth)})",
    lambda made, depth: f"STRUCT(f := {made.expression(depth)}, g := {made.expression(depth)})",
    lambda made, depth: f"{made.expression(depth)}[{made.expression(depth)}]",
    lambda made, depth: f"{made.expression(depth)}->f",
]


@dataclass(slots=True)
class Fuzzer:
    """Runs statements one by one. `outcomes` counts what became of them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    engine: Engine = field(default_factory=Engine)

    def run(self, seed: int) -> str | None:
        """Try the text of a seed; return it if something else than a refusal comes of it."""
        if seed % 500 == 0 or not self.engine.catalogue.sources:
            self.engine = Engine()
            self.engine.execute_text(SOURCES)
        dice = random.Random(seed)
        made = Maker(dice, dice.choice((1, 1, 1, 2, 2, 5)))
        single = made.dice.random() < 0.6
        text = made.expression() if single else made.statement(seed)
        if made.dice.random() < 0.4:
            text = made.broken(text)
        try:
            (self.compute if single else self.execute)(text)
            self.outcomes["accepted"] += 1
        except SqlError:
            self.outcomes["refused"] += 1
        except Exception as error:
            self.outcomes["wrong"] += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"seed {seed}: {type(error).__name__}: {error!s:.150} ({where.name}:{where.lineno}): {text!r:.400}"
        return None

    def execute(self, text: str) -> None:
        for statement in parse(text, {}):
            printed = statement_text(statement)
            again = statement_text(parse(printed, {})[0])
            assert printed == again, f"printed as {again!r} the second time, {printed!r} the first"
            self.engine.execute(statement)

    def compute(self, text: str) -> None:
        node = parse_expression(text)
        printed = expression_text(node)
        again = expression_text(parse_expression(printed))
        assert printed == again, f"printed as {again!r} the second time, {printed!r} the first"
        compute = compile_row([node], COLUMNS)
        for row in ROWS:
            compute(row)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000_000
    fuzzer = Fuzzer()
    wrong = [found for seed in range(first, first + count) if (found := fuzzer.run(seed)) is not None]
    print("\n".join(wrong[:50]))
    print(f"{count} statements from seed {first}: {dict(fuzzer.outcomes)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""Where functions and formats of SQL differ from ksqlDB: what, ksqlDB, Moldau. docs/deviations.md shows it."""

from __future__ import annotations

DEVIATIONS: tuple[tuple[str, str, str], ...] = (
    (
        "Dates before the year 1 and after 9999",
        "computed",
        "the value is null, with an entry in the processing log",
    ),
    (
        "Letters of weeks (`w`, `W`, `Y`, `F`), `zzzz` and `p` in patterns of times",
        "known",
        "refused by name: null and an entry",
    ),
    ("Regular expressions", "run until they end", "ended after 5 seconds: null and an entry"),
    (
        "COUNT_DISTINCT",
        "HyperLogLog over Java's hashes",
        "HyperLogLog over other hashes: estimates differ, states cannot be shared",
    ),
    (
        "EARLIEST_BY_OFFSET and LATEST_BY_OFFSET",
        "number rows from 0 after each start",
        "number them by the clock, so that sessions merge rightly after a restart",
    ),
    ("The order of a map", "that of the HashMap in hand", "that of a HashMap made for as many entries"),
    ("Arrays of arrays and of maps in PROTOBUF", "depends on the converter", "refused"),
    ("JSON Schemas that refer to others by URL", "followed", "refused"),
    ("Functions of users", "jars in Java", "files in Python"),
)

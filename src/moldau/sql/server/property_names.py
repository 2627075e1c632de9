"""Which properties there are: those of ksqlDB, of Kafka Streams and its clients (`property_names.txt`), and our own.

The file has the names of ksqlDB 8 and Kafka 4.3 in groups. Those of `ksql` and `request` are without the prefix.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from moldau.settings import SQL, rows

STREAMS, KSQL, REQUEST = "ksql.streams.", "ksql.", "request.ksql."
FUNCTIONS = "ksql.functions."  # whatever functions read
ROLES = ("consumer", "producer")


@cache
def groups() -> dict[str, frozenset[str]]:
    text = files("moldau.sql.server").joinpath("property_names.txt").read_text("utf-8")
    parts = (part.split() for part in text.split("[")[1:])
    return {name.removesuffix("]"): frozenset(names) for name, *names in parts}


def is_property(name: str) -> bool:
    """Tell whether a request may name this property, with or without the prefix of streams, as ksqlDB decides it."""
    known = groups()
    if name.startswith(REQUEST):
        return name.removeprefix(REQUEST) in known["request"]
    if name.startswith(KSQL) and not name.startswith(STREAMS):
        return name.removeprefix(KSQL) in known["ksql"] or name.startswith(FUNCTIONS) or name in rows(SQL)
    plain = name.removeprefix(STREAMS)
    if any(plain in known[group] for group in (*ROLES, "streams")):
        return True
    prefix, _, rest = plain.partition(".")
    return rest in known.get(prefix, ()) if prefix in (*ROLES, "topic") else False

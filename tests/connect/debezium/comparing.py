"""Where the records of two connectors differ, but for the differences that are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where two documents differ; fields of schemas are compared by their names, and their order as a whole.

    The tables of a transaction have the order of a Java hash map at Debezium, which depends on the database's name.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            if name == "fields" and "/schema" in path:
                named = [{each["field"]: each for each in one.get(name, ())} for one in (ours, theirs)]
                if list(named[0]) != list(named[1]):
                    yield f"{path} fields", [*named[0].keys() - named[1].keys()], [*named[1].keys() - named[0].keys()]
                for field in named[0].keys() & named[1].keys():
                    yield from differences(named[0][field], named[1][field], f"{path}/{field}")
            else:
                yield from differences(ours.get(name), theirs.get(name), f"{path}/{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        if path.endswith("/data_collections"):
            ours, theirs = (sorted(rows, key=itemgetter("data_collection")) for rows in (ours, theirs))
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{path}/{at}")
    elif ours != theirs:
        yield path, ours, theirs


def kind_of(payload: Mapping[str, Any]) -> str:
    """What a record is, as rows of expected differences name it."""
    if "ddl" in payload:
        return " of schema change" if payload["source"]["snapshot"] == "false" else " of snapshot"
    if "status" in payload:
        return " of transaction"
    return {"r": " of snapshot", "t": " of truncation"}.get(payload.get("op", ""), "")


def unexpected(ours: list[Any], theirs: list[Any], expected: Mapping[str, str]) -> Iterator[str]:
    """Yield each difference that is not meant, once."""
    told: set[str] = set()
    topics = {one["topic"] for one in (*ours, *theirs)}
    for topic in sorted(topics):
        both = [[one for one in records if one["topic"] == topic] for records in (ours, theirs)]
        if len(both[0]) != len(both[1]) and topic != "s.transaction":
            yield f"{topic}: ours has {len(both[0])} records, Debezium {len(both[1])}"
        for one, other in zip(*both, strict=False):
            kind = kind_of((one["value"] or {}).get("payload") or {})
            for path, our, their in differences(one, other):
                if any(re.fullmatch(known, path) or re.fullmatch(known, path + kind) for known in expected):
                    continue
                line = f"{topic}{path}: ours {str(our)[:120]}, Debezium {str(their)[:120]}"
                if line not in told:
                    told.add(line)
                    yield line

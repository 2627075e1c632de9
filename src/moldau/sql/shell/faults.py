"""Where a statement is wrong: the place that a refusal names, underlined, and the name that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moldau.sql.errors import ParseError
from moldau.sql.lexer import Token, tokenize
from moldau.sql.shell.names import PSEUDO, Names

_PLACE = re.compile(r"\bline (\d+):(\d+)")
# Words around the name that is not known, and which names it could have been.
_UNKNOWN = (
    (re.compile(r"column '(?:[^'.]*\.)?([^'.]+)' cannot be resolved"), "columns"),
    (re.compile(r"Could not find STREAM/TABLE '([^']+)'"), "sources"),
    (re.compile(r"(?:Stream|Table|Source) ([^ ]+) does not exist"), "sources"),
    (re.compile(r"unknown stream/table: `?([^`\s]+)`?"), "sources"),
    (re.compile(r"^([^ ]+) does not exist"), "sources"),
    (re.compile(r"functions? with the name '([^']+)'"), "functions"),
    (re.compile(r"Function '([^']+)'"), "functions"),
    (re.compile(r"Unknown queryId: ([^ \n]+)"), "queries"),
    (re.compile(r"Query with id:([^ ]+) does not exist"), "queries"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A place in a text: line and column from 1, the length, and the name that was probably meant."""

    line: int
    column: int
    length: int
    meant: str | None = None


def locate(text: str, message: str, names: Names | None = None) -> Fault | None:
    """Find the place of a refusal in the statement's text; None if it names none."""
    try:
        tokens = tokenize(text)
    except ParseError:
        tokens = []
    place = _PLACE.search(message)
    if place is not None:
        line, column = int(place.group(1)), int(place.group(2))
        token = next((one for one in tokens if (one.line, one.column) == (line, column)), None)
        found = line <= len(text.split("\n"))
        return Fault(line, column, 1 if token is None or token.kind == "end" else len(token.raw)) if found else None
    for pattern, kind in _UNKNOWN:
        unknown = pattern.search(message)
        if unknown is not None:
            return _named(tokens, unknown.group(1), kind, names)
    return None


def _named(tokens: list[Token], name: str, kind: str, names: Names | None) -> Fault | None:
    token = next((one for one in tokens if one.kind in ("name", "quoted") and one.value.upper() == name.upper()), None)
    if token is None:
        return None
    known = [] if names is None else _known(names, kind)
    close = [] if name.upper() in map(str.upper, known) else difflib.get_close_matches(name.upper(), known, 1)
    return Fault(token.line, token.column, len(token.raw), close[0] if close else None)


def _known(names: Names, kind: str) -> list[str]:
    match kind:
        case "columns":
            columns: Iterable[str] = (one for source in names.sources.values() for one in source.columns)
            return [*dict.fromkeys(columns), *PSEUDO]
        case "sources":
            return list(names.sources)
        case "functions":
            return list(names.functions)
    return names.queries


def wants_names(message: str) -> bool:
    """Return whether the names of the catalogue would help to explain a refusal."""
    return any(pattern.search(message) for pattern, _ in _UNKNOWN)


def lines(text: str, fault: Fault) -> Iterator[str]:
    """Yield the line of the fault, a line that underlines it, and what was probably meant."""
    line = text.split("\n")[fault.line - 1]
    begin = fault.column - 1
    yield line
    yield "".join("\t" if c == "\t" else " " for c in line[:begin]) + "^" * max(fault.length, 1)
    if fault.meant is not None:
        yield f"Did you mean {fault.meant}?"

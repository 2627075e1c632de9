"""Completion: what may stand at the cursor, by the words before it and the names that the server knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moldau.sql.lexer import NON_RESERVED, RESERVED
from moldau.sql.shell.names import PSEUDO, Names, quoted_if_needed
from moldau.sql.shell.statements import split

STATEMENTS = """
    SELECT | INSERT INTO | CREATE STREAM | CREATE TABLE | CREATE OR REPLACE STREAM | CREATE OR REPLACE TABLE
    | CREATE SOURCE STREAM | CREATE SOURCE TABLE | CREATE TYPE | SHOW STREAMS | SHOW TABLES | SHOW TOPICS | SHOW QUERIES
    | SHOW FUNCTIONS | SHOW TYPES | SHOW PROPERTIES | SHOW VARIABLES | SHOW CONNECTORS | DESCRIBE | DESCRIBE FUNCTION
    | EXPLAIN | PRINT | TERMINATE | PAUSE | RESUME | DROP STREAM | DROP TABLE | DROP TYPE | ALTER STREAM | ALTER TABLE
    | ALTER SYSTEM | SET | UNSET | DEFINE | UNDEFINE | ASSERT TOPIC | ASSERT SCHEMA
"""
OPTIONS = """
    KAFKA_TOPIC PARTITIONS REPLICAS RETENTION_MS CLEANUP_POLICY TIMESTAMP TIMESTAMP_FORMAT KEY_FORMAT VALUE_FORMAT
    FORMAT WRAP_SINGLE_VALUE KEY_DELIMITER VALUE_DELIMITER KEY_SCHEMA_ID VALUE_SCHEMA_ID KEY_SCHEMA_FULL_NAME
    VALUE_SCHEMA_FULL_NAME WINDOW_TYPE WINDOW_SIZE
"""
FORMATS = ("AVRO", "DELIMITED", "JSON", "JSON_SR", "KAFKA", "NONE", "PROTOBUF", "PROTOBUF_NOSR")
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`[^`]*`|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_@]*|[^\s]", re.DOTALL)
_OPEN = re.compile(r"'((?:[^']|'')*)\Z")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_@.]*\Z|`[^`]*\Z")
_DASHED = re.compile(r"[A-Za-z0-9_@.:-]+\Z")
_SOURCES = {"FROM", "JOIN", "INTO", "DESCRIBE"}
_QUERIES = {"TERMINATE", "PAUSE", "RESUME"}
_KINDS = {"STREAM", "TABLE"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A completion: the text, how many characters before the cursor it replaces, and a remark."""

    text: str
    replaces: int
    remark: str = ""


def complete(before: str, after: str, names: Names, commands: Iterable[str] = ()) -> list[Candidate]:
    """Return what may stand at the cursor, between `before` and `after`; the best come first."""
    done, rest = split(before)
    statement = before[_start_of(before, done, rest) :]
    return list(_candidates(statement, after, names, commands))


def _start_of(before: str, done: list[str], rest: str) -> int:
    return len(before) - len(rest) if rest and before.endswith(rest) else before.rfind(rest) if rest else len(before)


def _candidates(text: str, after: str, names: Names, commands: Iterable[str]) -> Iterator[Candidate]:
    inside = _OPEN.search(text) if text.count("'") % 2 else None
    if inside is not None:
        yield from _literals(text[: inside.start()], inside.group(1), names)
        return
    typed = _WORD.search(text)
    prefix = typed.group() if typed else ""
    tokens = _TOKEN.findall(text[: len(text) - len(prefix)])
    last = tokens[-1].upper() if tokens else ""
    if not tokens:
        yield from _starting(text.lstrip(), (one.strip() for one in (*STATEMENTS.split("|"), *commands)))
    elif last in _QUERIES:
        yield from _starting(prefix, [*names.queries, "ALL"])
    elif last == "PRINT":
        dashed = _DASHED.search(text)
        yield from _starting(dashed.group() if dashed else "", map(_topic, names.topics))
    elif [one.upper() for one in tokens[-2:]] == ["DESCRIBE", "FUNCTION"]:
        yield from _functions(prefix, names, call=False)
    elif _wants_source(tokens):
        yield from _sources(prefix, names)
        if last in ("DROP", "DESCRIBE"):
            yield from _starting(prefix, ["EXTENDED", "FUNCTION", "STREAMS", "TABLES"])
    elif "." in prefix:
        yield from _fields(prefix, text + after, names)
    elif _in_with(tokens):
        yield from _starting(prefix, (f"{option}=" for option in OPTIONS.split()))
    elif prefix or last in ("SELECT", ",", "(", "WHERE", "BY", "AND", "OR", "ON", "=", "<", ">"):
        yield from _columns(prefix, text + after, names)
        if prefix:
            yield from _functions(prefix, names)
            yield from _starting(prefix, sorted(RESERVED | NON_RESERVED), "keyword")
    elif last == "EXPLAIN":
        yield from _starting(prefix, names.queries)


def _wants_source(tokens: list[str]) -> bool:
    upper = [one.upper() for one in tokens]
    return upper[-1] in _SOURCES or (upper[-1] in _KINDS and upper[-2:-1] in (["DROP"], ["ALTER"]))


def _in_with(tokens: list[str]) -> bool:
    upper = [one.upper() for one in tokens]
    if "WITH" not in upper or upper[0] == "WITH":
        return False
    inside = upper[len(upper) - 1 - upper[::-1].index("WITH") + 1 :]
    return inside[:1] == ["("] and ")" not in inside and inside[-1] in ("(", ",")


def _literals(before: str, typed: str, names: Names) -> Iterator[Candidate]:
    """Complete what stands in quotes: a setting, a topic, a format."""
    words = [one.upper() for one in _TOKEN.findall(before)]
    if words in (["SET"], ["UNSET"], ["ALTER", "SYSTEM"]):
        yield from _starting(typed, names.settings)
    elif words[-2:-1] in (["KAFKA_TOPIC"],):
        yield from _starting(typed, names.topics)
    elif words[-1:] == ["="] and words[-2].endswith("FORMAT"):
        yield from _starting(typed, FORMATS)
    elif words[:1] == ["SET"] and "auto.offset.reset" in before:
        yield from _starting(typed, ("earliest", "latest"))


def _starting(prefix: str, words: Iterable[str], remark: str = "") -> Iterator[Candidate]:
    """Yield the words that begin like the prefix, in its case where case does not matter."""
    for word in words:
        if word.upper().startswith(prefix.upper()) and word != prefix:
            cased = word.lower() if prefix.islower() and word.isupper() and not prefix.startswith("'") else word
            yield Candidate(cased, len(prefix), remark)


def _topic(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_@]*", name) else f"'{name}'"


def _named(prefix: str, name: str, remark: str) -> Iterator[Candidate]:
    """Yield a name of the catalogue if it fits, in quotes where it needs them."""
    bare = prefix.lstrip("`")
    if name.upper().startswith(bare.upper()):
        text = quoted_if_needed(name)
        plain = bare.islower() and not text.startswith("`") and not prefix.startswith("`")
        yield Candidate(text.lower() if plain else text, len(prefix), remark)


def _sources(prefix: str, names: Names) -> Iterator[Candidate]:
    for name, source in sorted(names.sources.items()):
        yield from _named(prefix, name, f"{source.kind.lower()}: {', '.join(source.columns)}")


def _used(text: str, names: Names) -> dict[str, str]:
    """Return the sources that a statement reads, by alias and by name."""
    tokens = _TOKEN.findall(text)
    used: dict[str, str] = {}
    for at, token in enumerate(tokens[:-1]):
        if token.upper() in ("FROM", "JOIN", "INTO"):
            name = _plain(tokens[at + 1])
            if name in names.sources:
                used[name] = name
                alias = tokens[at + 2 : at + 4]
                alias = alias[1:] if alias[:1] and alias[0].upper() == "AS" else alias[:1]
                if alias and re.match(r"[A-Za-z_`]", alias[0]) and alias[0].upper() not in RESERVED:
                    used[_plain(alias[0])] = name
    return used


def _plain(token: str) -> str:
    return token.strip('`"') if token[:1] in '`"' else token.upper()


def _columns(prefix: str, text: str, names: Names) -> Iterator[Candidate]:
    used = _used(text, names)
    sources = dict.fromkeys(used.values()) if used else names.sources
    seen: set[str] = set()
    for source in sources:
        for name, kind in names.sources[source].columns.items():
            if name not in seen:
                seen.add(name)
                yield from _named(prefix, name, f"{kind} of {source}")
    if used and prefix:
        for name, kind in PSEUDO.items():
            yield from _named(prefix, name, kind)
        for alias in used:
            yield from _named(prefix, alias, "source")


def _fields(prefix: str, text: str, names: Names) -> Iterator[Candidate]:
    alias, _, begun = prefix.rpartition(".")
    source = _used(text, names).get(_plain(alias)) or _plain(alias)
    if source in names.sources:
        for name, kind in names.sources[source].columns.items():
            yield from _named(begun, name, f"{kind} of {source}")


def _functions(prefix: str, names: Names, call: bool = True) -> Iterator[Candidate]:
    for name, signatures in sorted(names.functions.items()):
        if name.upper().startswith(prefix.upper()):
            cased = name.lower() if prefix.islower() else name
            more = f" (+{len(signatures) - 1})" if len(signatures) > 1 else ""
            yield Candidate(f"{cased}(" if call else cased, len(prefix), f"{signatures[0]}{more}" if signatures else "")

"""The table of settings, read once from `table.txt`: scope -> name -> row."""

from __future__ import annotations

import pkgutil
import re
from typing import Any, NamedTuple

from moldau.settings.values import parse

TOPIC, BROKER, CLUSTER, GROUP, CLIENT_METRICS = "topic", "broker", "cluster", "group", "client-metrics"
QUOTA, IP, CLIENT = "quota", "ip", "client"
HTTP, REGISTRY, REST, SQL, CONNECT = "http", "registry", "rest", "sql", "connect"  # of services beside the broker

_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-\d+|oauthbearer|gssapi)\.)?(?=.)")


class Row(NamedTuple):
    """One setting. `default` is text as Kafka writes it, None where there is none."""

    name: str
    scope: str
    type: str
    default: str | None
    valid: str
    importance: str
    mode: str
    chain: tuple[str, ...]
    doc: str
    kafka_default: str | None

    @property
    def sensitive(self) -> bool:
        return self.type == "password"

    @property
    def internal(self) -> bool:
        return self.importance == "internal"

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Return Kafka's names for the same value, the row's own first if it is a broker setting."""
        links = tuple(link for link in self.chain if link[0] != "=")
        return (self.name, *links) if self.scope == BROKER else links

    def parse(self, text: str) -> Any:
        """Parse a text by Java's rules; refuse what is out of range."""
        return parse(self, text)


def table() -> dict[str, dict[str, Row]]:
    """Return scope -> name -> row; the file is read once."""
    if not _TABLE:
        _TABLE.update(_read_table())
    return _TABLE


def rows(scope: str) -> dict[str, Row]:
    return table()[BROKER if scope == CLUSTER else scope]


def base_name(name: str) -> str:
    """Return the name without `listener.name.NAME.` (and a SASL mechanism)."""
    match = _LISTENER_PREFIX.match(name)
    return name[match.end() :] if match else name


def inert_names() -> frozenset[str]:
    """Return the names that Kafka knows and that have no row; a trailing * stands for any ending."""
    table()
    return frozenset(_INERT)


def is_inert(name: str) -> bool:
    """Say whether Kafka knows the name but Moldau does not use it."""
    if row := rows(BROKER).get(name):
        return row.doc.startswith("No effect")
    return name in _INERT or any(known[-1] == "*" and name.startswith(known[:-1]) for known in _INERT)


def client_inert_names() -> frozenset[str]:
    """Return the names that librdkafka knows but Moldau's client does not use."""
    table()
    return frozenset(_CLIENT_INERT)


_TABLE: dict[str, dict[str, Row]] = {}
_INERT: set[str] = set()
_CLIENT_INERT: set[str] = set()


def _read_table() -> dict[str, dict[str, Row]]:
    text = (pkgutil.get_data(__package__ or "", "table.txt") or b"").decode()
    lines = [line for line in text.split("\n") if line and line[0] != "#"]
    sections: dict[str, list[str]] = {}
    section: list[str] = []
    for line in lines:
        if line[0] == "[":
            section = sections[line[1:-1]] = []
        else:
            section.append(line)
    _INERT.update(" ".join(sections.pop("inert")).split())
    _CLIENT_INERT.update(" ".join(sections.pop("client-inert")).split())
    deviates = {name: (default, why) for name, default, why in (x.split(None, 2) for x in sections.pop("deviates"))}
    return {
        scope: {row.name: row for row in (_row(scope, line, deviates) for line in text)}
        for scope, text in sections.items()
    }


def _row(scope: str, line: str, deviates: dict[str, tuple[str, str]]) -> Row:
    name, kind, default, valid, importance, mode, chain, doc = line.split(None, 7)
    ours = kafkas = None if default == "null" else default.strip('"')
    if scope == BROKER and name in deviates:
        kafkas, why = deviates[name]
        doc = f"{doc} Kafka's default is {kafkas}. {why}" if kafkas != "null" else f"{doc} {why}"
        kafkas = None if kafkas == "null" else kafkas
    links = () if chain == "-" else tuple(chain.split(","))
    return Row(name, scope, kind, ours, valid, importance, mode, links, doc, kafkas)

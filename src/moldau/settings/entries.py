"""DescribeConfigs as rows: the value of each setting, its source, and its synonyms in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moldau.settings.layers import Settings
from moldau.settings.resources import effective
from moldau.settings.table import BROKER, CLIENT_METRICS, CLUSTER, GROUP, TOPIC, Row, base_name, rows
from moldau.settings.values import format_value

# Where a value comes from, as numbered by DescribeConfigs.
DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG = 1, 2, 3
STATIC_BROKER_CONFIG, DEFAULT_CONFIG, DYNAMIC_BROKER_LOGGER_CONFIG = 4, 5, 6
CLIENT_METRICS_CONFIG, GROUP_CONFIG = 7, 8

_SOURCES = (
    "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG", "DYNAMIC_BROKER_LOGGER_CONFIG", "DYNAMIC_CLIENT_METRICS_CONFIG", "DYNAMIC_GROUP_CONFIG",
)  # fmt: skip
SOURCES = dict(enumerate(_SOURCES, 1))
TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
TYPE_CODES = {name: code for code, name in enumerate(TYPES)}
_OWN_SOURCE = {TOPIC: DYNAMIC_TOPIC_CONFIG, GROUP: GROUP_CONFIG, CLIENT_METRICS: CLIENT_METRICS_CONFIG}


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


class Entry(NamedTuple):
    """One setting in a DescribeConfigs answer; a sensitive value is None."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    type: int
    synonyms: tuple[Synonym, ...]
    doc: str | None


def describe(
    scope: str, settings: Settings, overrides: Mapping[str, str] | None = None, names: Collection[str] | None = None
) -> list[Entry]:
    """Return the entries of a resource, all or those named. CLUSTER is the default for all brokers.

    `overrides` are the resource's own settings; those of the broker and the cluster are layers of `settings`.
    """
    own = overrides or {}
    listed = [name for name in _names(scope, settings, own) if not names or name in names]
    if scope in (BROKER, CLUSTER):
        return [_broker_entry(scope, settings, name) for name in listed]
    values = effective(scope, settings, own)
    return [_entry(rows(scope)[name], settings, own, format_value(values[name])) for name in listed]


def _names(scope: str, settings: Settings, own: Mapping[str, str]) -> Iterable[str]:
    """Return the names of the settings that a resource lists."""
    if scope == CLUSTER:
        return settings.cluster
    if scope == BROKER:
        shown = [row.name for row in rows(BROKER).values() if not (row.internal or row.mode in ("dynamic", "unlisted"))]
        return dict.fromkeys([*shown, *settings.static, *settings.cluster, *settings.broker])
    return [name for name, row in rows(scope).items() if not row.internal or name in own]


def _entry(row: Row, settings: Settings, own: Mapping[str, str], value: str | None) -> Entry:
    found = _layered(settings, rows(BROKER)[row.chain[0]].synonyms, False) if row.chain else ()
    if row.scope == GROUP and not row.chain:
        found = (Synonym(row.name, row.default, DEFAULT_CONFIG),)
    if row.name in own:
        found = (Synonym(row.name, value, _OWN_SOURCE[row.scope]), *found)
    source = found[0].source if found else DEFAULT_CONFIG
    return Entry(row.name, value, source, False, row.sensitive, TYPE_CODES[row.type], found, row.doc)


def _broker_entry(scope: str, settings: Settings, name: str) -> Entry:
    row = _listed_row(base_name(name))
    names = (name,) if row is None else row.synonyms if row.name == name else (name, row.name)
    found = _layered(settings, names, secret=row is None or row.sensitive)
    if scope == CLUSTER:
        found = tuple(one for one in found if one.source == DYNAMIC_DEFAULT_BROKER_CONFIG)
    source = found[0].source if found else DEFAULT_CONFIG
    if row is None:  # as Kafka shows what it does not know: a secret that cannot be changed
        return Entry(name, None, source, True, True, TYPE_CODES["unknown"], found, None)
    plain = row.name == name
    value = format_value(row.parse(found[0].value)) if found and found[0].value is not None else None
    read_only = not plain or row.mode == "read-only"
    return Entry(name, value, source, read_only, row.sensitive, TYPE_CODES[row.type], found, row.doc if plain else None)


def _layered(settings: Settings, names: tuple[str, ...], secret: bool) -> tuple[Synonym, ...]:
    """Return every layer that has one of the names, strongest first, starting at the first name itself, as in Kafka."""
    layers: tuple[tuple[int, Mapping[str, str]], ...] = (
        (DYNAMIC_BROKER_CONFIG, settings.broker),
        (DYNAMIC_DEFAULT_BROKER_CONFIG, settings.cluster),
        (STATIC_BROKER_CONFIG, settings.static),
        (DEFAULT_CONFIG, {name: default for name in names if (default := _default(settings, name)) is not None}),
    )
    found = [
        Synonym(name, None if secret else layer[name], source)
        for source, layer in layers
        for name in names
        if name in layer
    ]
    first = next((index for index, one in enumerate(found) if one.name == names[0]), len(found))
    return tuple(found[first:])


def _listed_row(name: str) -> Row | None:
    row = rows(BROKER).get(name)
    return row if row and row.mode != "unlisted" else None


def _default(settings: Settings, name: str) -> str | None:
    row = _listed_row(name)
    return settings.default(row) if row and row.mode != "dynamic" else None

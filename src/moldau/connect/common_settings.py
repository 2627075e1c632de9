"""The settings that all connectors have, those of sources and those of sinks, as Connect defines them."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from moldau.connect.config_def import (
    ConfigDef,
    Importance,
    Key,
    Kind,
    Recommender,
    Width,
    between,
    listed,
    one_of,
    one_of_any_case,
    without_control_characters,
)
from moldau.connect.errors import ConfigError, invalid


def no_alias_twice(name: str, value: Any) -> None:
    if value and len(set(value)) < len(value):
        raise invalid(name, listed(value), "Duplicate alias provided.")


def not_negative(name: str, value: Any) -> None:
    if value is not None and value < 0:
        raise invalid(name, value, "Value must be at least 0")


def a_pattern(name: str, value: Any) -> None:
    try:
        re.compile(value or "")
    except re.error as error:
        raise ConfigError(f"Invalid value {value} for configuration {name}: Invalid regex: {error}") from None


VALIDATORS = {
    "name": without_control_characters,
    "tasks.max": between(1),
    "transforms": no_alias_twice,
    "predicates": no_alias_twice,
    "topic.creation.groups": no_alias_twice,
    "config.action.reload": one_of("none", "restart"),
    "errors.tolerance": one_of("none", "all"),
    "exactly.once.support": one_of_any_case("required", "requested"),
    "transaction.boundary": one_of_any_case("interval", "poll", "connector"),
    "transaction.boundary.interval.ms": not_negative,
    "topics.regex": a_pattern,
    "errors.restart.max": between(0),
    "errors.restart.delay.ms": between(0),
}


def definition(
    kind: str,
    version: str,
    converters: Callable[[str], list[str]],
    of_worker: Mapping[str, str],
    config: Mapping[str, Any] = MappingProxyType({}),
) -> ConfigDef:
    """Return the settings that a connector of a kind has beside its own. `converters` has the names of each role, and
    `of_worker` the converters of its worker, with their versions. Settings of Moldau are there if the config has any.
    """
    table = _table()
    ours = table["moldau"] if any(_name(row) in config for row in table["moldau"]) else []
    return ConfigDef(_key(row, version, converters, of_worker) for row in [*table["all"], *table[kind], *ours])


def _name(row: str) -> str:
    return row.partition("|")[0].strip()


@cache
def _table() -> dict[str, list[str]]:
    text = (pkgutil.get_data(__package__ or "", "common_settings.txt") or b"").decode()
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            rows = found[line[1:-1]] = []
        elif not line.startswith("#"):
            rows.append(line)
    return found


def _key(row: str, version: str, converters: Callable[[str], list[str]], of_worker: Mapping[str, str]) -> Key:
    name, kind, default, importance, group, order, width, display, doc = (part.strip() for part in row.split("|", 8))
    more: dict[str, Any] = {} if default == "*" else {"default": None if default == "-" else default}
    role = name.partition(".")[0]
    if name == "connector.plugin.version":
        more = {"default": version, "recommender": Recommender(lambda _name, _values: [version])}
    elif kind == "CLASS":
        known = converters(role)
        more |= {"recommender": Recommender(lambda _n, _v: known), "resolve": lambda text: _whole(text, known)}
    elif name in of_worker:
        more["recommender"] = Recommender(lambda name, _values: [of_worker[name]])
    elif name.endswith(".converter.plugin.version"):
        more["recommender"] = Recommender(visible=lambda _name, _values: False)
    if name in of_worker:
        more["default"] = of_worker[name]
    return Key(
        name,
        Kind[kind],
        importance=Importance[importance],
        doc=doc,
        group=group,
        order=int(order),
        width=Width[width],
        display=display,
        validator=VALIDATORS.get(name),
        **more,
    )


def _whole(text: str, known: list[str]) -> str | None:
    """Return the whole name of a class that may be named without its package."""
    return next((name for name in known if text in (name, name.rpartition(".")[2])), None)

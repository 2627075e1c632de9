"""The settings of topics, groups and client metrics, and changes to them and to a running broker.

A resource keeps its own settings as text, name -> value ("overrides"). A change is a function from overrides to
overrides; it refuses with SettingError, whose `error` names the Kafka error code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.settings.checks import check_group, check_topic
from moldau.settings.layers import Settings
from moldau.settings.table import BROKER, CLIENT_METRICS, CLUSTER, GROUP, TOPIC, Row, base_name, rows
from moldau.settings.values import SettingError

# What IncrementalAlterConfigs does to a value.
SET, DELETE, APPEND, SUBTRACT = range(4)

_CLIENT_MATCHES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

Overrides = Mapping[str, str]


def topic_settings(settings: Settings, overrides: Overrides) -> dict[str, Any]:
    """Return a topic's settings, typed, its own or the broker's. `internal.segment.bytes` wins over the public one."""
    values = effective(TOPIC, settings, overrides)
    if values["internal.segment.bytes"] is not None:
        values["segment.bytes"] = values["internal.segment.bytes"]
    return values


def group_settings(settings: Settings, overrides: Overrides) -> dict[str, Any]:
    """Return all settings of a group, typed: its own or the broker's."""
    return effective(GROUP, settings, overrides)


def client_metrics_settings(settings: Settings, overrides: Overrides) -> dict[str, Any]:
    """Return all settings of a subscription to client metrics, typed."""
    return effective(CLIENT_METRICS, settings, overrides)


def effective(scope: str, settings: Settings, overrides: Overrides) -> dict[str, Any]:
    return {name: _value(row, settings, overrides) for name, row in rows(scope).items()}


def _value(row: Row, settings: Settings, overrides: Overrides) -> Any:
    if row.name in overrides:
        return row.parse(overrides[row.name])
    if row.chain:
        return settings[row.chain[0]]
    return None if row.default is None else row.parse(row.default)


def understood(scope: str, overrides: Overrides) -> dict[str, str]:
    """Return the overrides that can be obeyed. Others are ignored, as in Kafka: a controller may take them, or know
    more of them than this release.
    """
    return {name: value for name, value in overrides.items() if _is_understood(scope, name, value)}


def _is_understood(scope: str, name: str, value: str) -> bool:
    try:
        if scope in (BROKER, CLUSTER):
            _running({name: value}, one_broker=scope == BROKER)
        elif name in rows(scope):
            rows(scope)[name].parse(value)
    except SettingError:
        return False
    return True


def validate(scope: str, overrides: Mapping[str, str | None], settings: Settings | None = None) -> None:
    """Refuse overrides that the resource cannot have."""
    given: dict[str, str] = {}
    for name, value in overrides.items():
        if value is None:
            raise SettingError(name, None, "it needs a value")
        given[name] = value
    _VALIDATORS[scope](settings or Settings({}), given)


def validate_topic(overrides: Mapping[str, str | None], settings: Settings | None = None) -> None:
    validate(TOPIC, overrides, settings)


def _topic(settings: Settings, overrides: Overrides) -> None:
    _known(TOPIC, overrides)
    check_topic(effective(TOPIC, settings, overrides))


def _group(settings: Settings, overrides: Overrides) -> None:
    _known(GROUP, overrides)
    check_group(settings, effective(GROUP, settings, overrides))


def _client_metrics(settings: Settings, overrides: Overrides) -> None:
    _known(CLIENT_METRICS, overrides, error="INVALID_REQUEST")
    values = effective(CLIENT_METRICS, settings, overrides)
    if not 100 <= values["interval.ms"] <= 3_600_000:
        reason = "it must be between 100 and 3600000"
        raise SettingError("interval.ms", overrides["interval.ms"], reason, "INVALID_REQUEST")
    for pattern in values["match"]:
        name, equals, expression = pattern.partition("=")
        if name.strip() not in _CLIENT_MATCHES or not equals or not _compiles(expression.strip()):
            raise SettingError("match", pattern, "it must be a list of client_id=EXPRESSION and the like")


def _compiles(expression: str) -> bool:
    try:
        return bool(re.compile(expression))
    except re.error:
        return False


def _known(scope: str, names: Iterable[str], error: str = "INVALID_CONFIG") -> None:
    for name in names:
        if name not in rows(scope):
            raise SettingError(name, None, f"there is no such {scope} setting", error)


def _running(overrides: Overrides, one_broker: bool) -> None:
    """Refuse what cannot change while the broker runs; an unknown name is stored, as in Kafka."""
    for name, value in overrides.items():
        row = rows(BROKER).get(base_name(name))
        if row is None or row.mode == "unlisted":
            continue
        if reason := _fixed_because(row, row.name != name, one_broker):
            raise SettingError(name, None, reason, "INVALID_REQUEST")
        try:
            row.parse(value)
        except SettingError as refused:
            raise SettingError(name, refused.value, refused.reason, "INVALID_REQUEST") from None


# What can be set for a listener of all brokers; everything else about a listener is set for each broker.
LIMITS_OF_LISTENERS = {"max.connections", "max.connection.creation.rate", "num.network.threads"}


def _fixed_because(row: Row, prefixed: bool, one_broker: bool) -> str | None:
    if row.mode == "read-only" and not prefixed:
        return "it cannot be changed while the broker runs"
    if row.mode == "per-listener" and not prefixed:
        return f"while the broker runs it is changed for one listener, as listener.name.NAME.{row.name}"
    one_listener = prefixed and row.name not in LIMITS_OF_LISTENERS
    if not one_broker and (one_listener or row.mode == "per-broker"):
        return "it is changed for one broker, not for all"
    return None


_VALIDATORS: dict[str, Callable[[Settings, Overrides], None]] = {
    TOPIC: _topic,
    GROUP: _group,
    CLIENT_METRICS: _client_metrics,
    BROKER: lambda settings, overrides: _running(overrides, one_broker=True),
    CLUSTER: lambda settings, overrides: _running(overrides, one_broker=False),
}


Change = tuple[str, int, str | None]


def alter(
    scope: str, settings: Settings, overrides: Overrides, changes: Iterable[Change], *, elr: bool = False
) -> dict[str, str]:
    """Return the overrides after (name, operation, value) changes, as IncrementalAlterConfigs makes them.

    `elr` says that eligible leader replicas (KIP-966) are on: min.insync.replicas then belongs to the whole cluster.
    """
    changes = list(changes)
    _check_changes(changes)
    altered = dict(overrides)
    for name, operation, value in changes:
        match operation:
            case 0:
                altered[name] = value or ""
            case 1:
                altered.pop(name, None)
            case 2 | 3:
                altered[name] = _relisted(scope, overrides, name, value or "", append=operation == APPEND)
            case _:
                raise SettingError(name, None, f"there is no operation {operation}", "INVALID_REQUEST")
    validate(scope, altered, settings)
    if elr:
        _check_eligible(scope, overrides, altered, changes)
    return altered


def _check_changes(changes: list[Change]) -> None:
    names = [name for name, _, _ in changes]
    for name, operation, value in changes:
        if names.count(name) > 1:
            raise SettingError(name, None, "it is changed twice in one request", "INVALID_REQUEST")
        if value is None and operation != DELETE:
            raise SettingError(name, None, "it needs a value", "INVALID_REQUEST")


def _check_eligible(scope: str, overrides: Overrides, altered: Overrides, changes: list[Change]) -> None:
    name = "min.insync.replicas"
    if scope == BROKER and any(name == changed for changed, _, _ in changes):
        raise SettingError(name, None, "with eligible leader replicas it is changed for all brokers, not for one")
    if scope == CLUSTER and name in overrides and name not in altered:
        raise SettingError(name, None, "with eligible leader replicas it cannot be removed")


def _relisted(scope: str, overrides: Overrides, name: str, value: str, *, append: bool) -> str:
    """Add or remove elements of a list; a list that is not set starts from the table's default, as in Kafka."""
    row = rows(scope).get(base_name(name))
    # Kafka has the lists of client metrics under lists, and refuses this all the same.
    if row is None or row.type != "list" or scope == CLIENT_METRICS:
        raise SettingError(name, None, "it is not a list, so nothing can be appended to or subtracted from it")
    old = [part for part in overrides.get(name, row.default or "").split(",") if part]
    parts = value.split(",")
    return ",".join(dict.fromkeys([*old, *parts]) if append else [part for part in old if part not in parts])


def replace(
    scope: str,
    settings: Settings,
    given: Mapping[str, str | None],
    *,
    overrides: Overrides | None = None,
    elr: bool = False,
) -> dict[str, str]:
    """Return the overrides after the older AlterConfigs: exactly what was given. `overrides` are those before it."""
    removed: list[Change] = [(name, DELETE, None) for name in overrides or () if name not in given]
    changes = removed + [(name, SET, value) for name, value in given.items()]
    return alter(scope, settings, overrides or {}, changes, elr=elr)


def validate_quota(scope: str, name: str, value: float) -> None:
    """Refuse an invalid quota of users and client ids (QUOTA) or of addresses (IP)."""
    row = rows(scope).get(name)
    if row is None:
        raise SettingError(name, None, "there is no such quota", "INVALID_REQUEST")
    if not value > 0:
        raise SettingError(name, str(value), "it must be more than 0", "INVALID_REQUEST")
    if row.type != "double" and abs(value - round(value)) > 1e-6:
        raise SettingError(name, str(value), "it must be a whole number", "INVALID_REQUEST")

"""Checks that look at more than one setting, as rows: which value must not be above which other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.settings.table import BROKER, GROUP, base_name, rows
from moldau.settings.values import SettingError, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from moldau.settings.layers import Settings

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# The left must be at most the right.
_AT_MOST = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
)
# The left must be less than the right.
_BELOW = (
    ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.session.timeout.ms"),
    ("group.streams.heartbeat.interval.ms", "group.streams.session.timeout.ms"),
)


def bounds(name: str) -> tuple[str | None, str | None]:
    """Return the broker settings that bound a group setting: `group.consumer.min.…` and `group.consumer.max.…`."""
    kind, _, rest = name.removeprefix("group.").partition(".")
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    return low if low in rows(BROKER) else None, high if high in rows(BROKER) else None


def check_broker(settings: Settings) -> None:
    """Check the settings given at start, one by one and together."""
    for name, text in settings.static.items():
        if row := rows(BROKER).get(base_name(name)):
            row.parse(text)
    for name, bound in _AT_MOST:
        _at_most(settings[name], name, settings[bound], bound)
    for name, bound in _BELOW:
        _below(settings[name], name, settings[bound], bound)
    for row in rows(GROUP).values():
        for name in row.chain:
            _within(settings, name, settings[name])
    for name, objection in _objections(settings):
        raise SettingError(name, format_value(settings[name]), objection)


def check_group(settings: Settings, values: Mapping[str, Any]) -> None:
    """Check a group's values against what the broker allows."""
    for name, value in values.items():
        _within(settings, name, value)
    for name, bound in _BELOW:
        short, long = name.removeprefix("group."), bound.removeprefix("group.")
        _below(values[short], short, values[long], long)


def check_topic(values: Mapping[str, Any]) -> None:
    """Check a topic's values, with the broker's filled in."""
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    _at_most(values[low], low, values[high], high)
    if values["remote.storage.enable"]:
        raise SettingError("remote.storage.enable", "true", "this broker has no tiered storage")


def _objections(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each setting that cannot have its value, and why."""
    if settings["authorizer.class.name"] not in ("", STANDARD_AUTHORIZER):
        yield "authorizer.class.name", f"the one there is is called {STANDARD_AUTHORIZER}; empty means none"
    users = settings["super.users"].split(";") if settings["authorizer.class.name"] else ()
    if any(":" not in user for user in users if user.strip()):
        yield "super.users", "users are written User:NAME, separated by semicolons"
    if settings["node.id"] != settings["broker.id"]:
        yield "broker.id", "it must be the same as node.id"
    if settings["log.roll.ms"] < 1:
        yield "log.roll.ms", "it must be at least 1"
    if settings["log.roll.jitter.ms"] < 0:
        yield "log.roll.jitter.ms", "it must be at least 0"
    if settings["log.retention.ms"] < 1 and settings["log.retention.ms"] != -1:
        yield "log.retention.ms", "it must be at least 1, or -1 for no limit"
    if 0 < settings["queued.max.request.bytes"] < settings["socket.request.max.bytes"]:
        yield "queued.max.request.bytes", "it must be at least socket.request.max.bytes"
    if settings["max.connections.per.ip"] == 0 and not settings["max.connections.per.ip.overrides"]:
        yield "max.connections.per.ip", "it may be 0 only if max.connections.per.ip.overrides is set"
    if 0 <= settings["connections.max.idle.ms"] <= settings["connection.failed.authentication.delay.ms"]:
        yield "connections.max.idle.ms", "it must be more than connection.failed.authentication.delay.ms"


def _within(settings: Settings, name: str, value: Any) -> None:
    low, high = bounds(name)
    if low and value is not None:
        _at_most(settings[low], low, value, name)
    if high and value is not None:
        _at_most(value, name, settings[high], high)


def _at_most(value: Any, name: str, limit: Any, bound: str) -> None:
    if value > limit:
        raise SettingError(name, format_value(value), f"it must be at most {bound} ({limit})")


def _below(value: Any, name: str, limit: Any, bound: str) -> None:
    if value >= limit:
        raise SettingError(name, format_value(value), f"it must be less than {bound} ({limit})")

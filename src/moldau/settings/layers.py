"""The settings of one broker in layers, and its listeners.

The layers: changed for this broker, changed for all brokers, given at start, default. The first that has the name, or
a synonym of it, decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.settings.checks import check_broker
from moldau.settings.properties import assignment, properties
from moldau.settings.table import BROKER, Row, base_name, is_inert, rows
from moldau.settings.values import SettingError

# A node that is alone can keep one replica; in a cluster Kafka's own defaults hold.
IN_CLUSTER = frozenset(
    {
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)
_UNITS_MS = {"hours": 3_600_000, "minutes": 60_000}


class Settings:
    """The settings of one broker. `settings["log.segment.bytes"]` is typed and resolved through the layers."""

    __slots__ = ("_values", "broker", "cluster", "static", "warnings")

    def __init__(
        self,
        static: Mapping[str, str],
        broker: Mapping[str, str] | None = None,
        cluster: Mapping[str, str] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.static, self.broker, self.cluster = dict(static), dict(broker or {}), dict(cluster or {})
        self.warnings = warnings
        self._values: dict[str, Any] = {}

    @staticmethod
    def load(source: str | Mapping[str, str] = "", overrides: Mapping[str, str] | Iterable[str] = ()) -> Settings:
        """Read settings from properties text or pairs; overrides (pairs, or `key=value` texts) win over them."""
        static = properties(source) if isinstance(source, str) else dict(source)
        static.update(overrides if isinstance(overrides, Mapping) else map(assignment, overrides))
        # Kafka keeps both names of a node's number equal, and shows both as given at start.
        number = static.get("node.id", static.get("broker.id", rows(BROKER)["node.id"].default or ""))
        static = {"node.id": number, "broker.id": number} | static
        settings = Settings(static, warnings=tuple(filter(None, map(without_effect, static))))
        check_broker(settings)
        return settings

    def with_dynamic(self, broker: Mapping[str, str], cluster: Mapping[str, str]) -> Settings:
        """Return the same start settings with other changes at run time: for this broker, and for all."""
        return Settings(self.static, broker, cluster, self.warnings)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._resolve(rows(BROKER)[name])
            return value

    def listener(self, listener: str, name: str, mechanism: str = "") -> Any:
        """Return a setting of one listener (and SASL mechanism): `listener.name.NAME.` wins over the plain name."""
        prefix = f"listener.name.{listener.lower()}."
        for key in (f"{prefix}{mechanism.lower()}.{name}", prefix + name):
            for layer in (self.broker, self.cluster, self.static):
                if key in layer:
                    return rows(BROKER)[name].parse(layer[key])
        return self[name]

    @property
    def is_alone(self) -> bool:
        """Tell whether this node is its own controller, and has no listener at which others could reach that."""
        names = self["controller.listener.names"]
        has_listener = any(text.partition("://")[0].strip() in names for text in self["listeners"])
        return "controller" in self["process.roles"] and not has_listener

    def default(self, row: Row) -> str | None:
        """Return the default of a setting for such a node."""
        return row.kafka_default if row.name in IN_CLUSTER and not self.is_alone else row.default

    def _resolve(self, row: Row) -> Any:
        names = row.synonyms
        for layer in (self.broker, self.cluster, self.static):
            for name in names:
                if name in layer:
                    return _in_unit_of(row, name, rows(BROKER)[name].parse(layer[name]))
        for name in names:
            if (default := self.default(rows(BROKER)[name])) is not None:
                return _in_unit_of(row, name, rows(BROKER)[name].parse(default))
        fallbacks = [link[1:] for link in row.chain if link[0] == "="]
        return self[fallbacks[0]] if fallbacks else None


def _in_unit_of(row: Row, name: str, value: Any) -> Any:
    """Convert `log.retention.hours` to `log.retention.ms`; a negative time means forever in every unit."""
    unit = _UNITS_MS.get(name.rpartition(".")[2], 1)
    if not row.name.endswith(".ms") or unit == 1:
        return value
    return value * unit if value >= 0 else -1


def without_effect(name: str) -> str | None:
    """Return the warning about a setting that has no effect; None if it has one."""
    base = base_name(name)
    if is_inert(base):
        return f"Setting {name} has no effect in Moldau."
    return None if base in rows(BROKER) else f"Setting {name} is unknown and ignored."


class Endpoint(NamedTuple):
    """A listener: its name, security protocol, host and port."""

    name: str
    protocol: str
    host: str
    port: int


def endpoints(settings: Settings, name: str = "listeners", *, of_controller: bool = False) -> list[Endpoint]:
    """Return `listeners` or `advertised.listeners`: those for clients and brokers, or those of the controller."""
    controllers = {one.upper() for one in settings["controller.listener.names"]}
    found = [_endpoint(settings, name, text) for text in settings[name]]
    return [one for one in found if (one.name in controllers) is of_controller]


def _endpoint(settings: Settings, name: str, text: str) -> Endpoint:
    match = re.fullmatch(r"([A-Za-z0-9_.-]+)://(?:\[([0-9a-fA-F:.%a-z]*)\]|([^:/\[\]]*)):(\d{1,5})", text)
    if not match or int(match[4]) > 65535:
        raise SettingError(name, text, "a listener is written NAME://HOST:PORT")
    listener = match[1].upper()
    return Endpoint(listener, protocol_of(settings, listener, name), match[2] or match[3] or "", int(match[4]))


def protocol_of(settings: Settings, listener: str, name: str = "listeners") -> str:
    """Return the security protocol of a listener; `name` is the setting that has it."""
    pairs = (pair.partition(":") for pair in settings["listener.security.protocol.map"].split(",") if pair)
    protocols = {"CONTROLLER": "PLAINTEXT"} | {left.strip().upper(): right.strip().upper() for left, _, right in pairs}
    if listener not in protocols:
        raise SettingError(name, listener, f"listener.security.protocol.map has no entry for {listener}")
    return protocols[listener]

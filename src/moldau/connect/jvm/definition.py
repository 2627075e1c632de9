"""The settings of a Java plugin: its ConfigDef, which the plugin itself validates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.connect.config_def import REQUIRED, ConfigDef, ConfigValue, Importance, Key, Kind, Width

Ask = Callable[..., Any]


class JavaConfigDef(ConfigDef):
    """A table of settings of a Java plugin, whose texts only the plugin can read."""

    def __init__(self, keys: Iterable[Key], ask: Ask) -> None:
        super().__init__(keys)
        self._ask = ask

    def parse(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Leave the texts to the plugin."""
        return dict(config)

    def validate(self, config: Mapping[str, Any]) -> dict[str, ConfigValue]:
        """Have the plugin find what is wrong, and what could be chosen."""
        given = {name: text for name, text in config.items() if text is not None}
        return {row[0]: ConfigValue(*row) for row in self._ask("validate", given)}


def key_of(row: list[Any]) -> Key:
    name, kind, is_required, default, importance, doc, group, order, width, display, dependents, internal = row
    return Key(
        name,
        Kind[kind],
        REQUIRED if is_required else default,
        Importance[importance],
        doc or "",
        group,
        order,
        Width[width],
        display,
        tuple(dependents),
        internal=internal,
    )


def described(ask: Ask) -> tuple[str | None, JavaConfigDef]:
    """Return the class of a plugin's tasks, if it is a connector, and its settings."""
    task_class, rows = ask("describe")
    return task_class, JavaConfigDef(map(key_of, rows), ask)

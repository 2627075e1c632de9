"""The settings of a service that is not a broker: rows of one or more scopes, given values, defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.settings.properties import assignment
from moldau.settings.table import Row, rows
from moldau.settings.values import SettingError


class ServiceSettings:
    """Typed settings: `settings["kafkastore.topic"]`. Names with one of the `prefixes` are left for `under`."""

    __slots__ = ("_given", "_values")

    def __init__(
        self, scopes: Iterable[str], given: Mapping[str, str] | Iterable[str] = (), prefixes: tuple[str, ...] = ()
    ) -> None:
        known: dict[str, Row] = {name: row for scope in scopes for name, row in rows(scope).items()}
        self._given = dict(given if isinstance(given, Mapping) else map(assignment, given))
        for name in self._given:
            if name not in known and not name.startswith(prefixes or ("\0",)):
                from difflib import get_close_matches

                near = get_close_matches(name, known, n=1)
                raise SettingError(name, None, f"there is no such setting{f'; is it {near[0]}?' if near else ''}")
        self._values = {name: _value(row, self._given.get(name, row.default)) for name, row in known.items()}

    def with_given(self, more: Mapping[str, str]) -> ServiceSettings:
        """Return the same settings with more of those that have no row."""
        other = object.__new__(ServiceSettings)
        other._values, other._given = self._values, {**self._given, **more}
        return other

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def seconds(self, name: str) -> float:
        """Return a setting in milliseconds as seconds."""
        return self._values[name] / 1000

    def under(self, prefix: str) -> dict[str, str]:
        """Return what was given under a prefix and has no row, without the prefix, such as a client's settings."""
        return {
            name.removeprefix(prefix): text
            for name, text in self._given.items()
            if name.startswith(prefix) and name not in self._values
        }


def _value(row: Row, text: str | None) -> Any:
    return None if text is None else row.parse(text)

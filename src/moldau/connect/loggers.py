"""Levels of loggers over REST: Python's loggers under Connect's names for levels."""

from __future__ import annotations

import logging
import time
from typing import Any

from moldau.http import HttpError

LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50, "OFF": 100}
ROOT = "root"


class Loggers:
    """The loggers of this process, and when each was last changed here."""

    def __init__(self) -> None:
        self._changed_ms: dict[str, int] = {}

    def listed(self) -> dict[str, Any]:
        return {name: self._row(name, logger) for name, logger in sorted(_known().items())}

    def shown(self, name: str) -> dict[str, Any]:
        found = _known().get(name)
        if found is None:
            raise HttpError(404, f"Logger {name} not found.")
        return self._row(name, found)

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; return their names."""
        if level.upper() not in LEVELS:
            raise HttpError(404, f"invalid log level '{level}'.")
        known = _known()
        chosen = [one for one in sorted(known) if name == ROOT or one == name or one.startswith(name + ".")]
        now = time.time_ns() // 1_000_000
        for one in chosen if name in chosen else [name, *chosen]:
            known.get(one, logging.getLogger(one)).setLevel(LEVELS[level.upper()])
            self._changed_ms[one] = now
        return chosen if name in chosen else sorted([name, *chosen])

    def _row(self, name: str, logger: logging.Logger) -> dict[str, Any]:
        return {"level": level_name(logger.getEffectiveLevel()), "last_modified": self._changed_ms.get(name)}


def level_name(number: int) -> str:
    return max(((value, name) for name, value in LEVELS.items() if value <= number), default=(0, "TRACE"))[1]


def _known() -> dict[str, logging.Logger]:
    manager = logging.Logger.manager.loggerDict.items()
    return {ROOT: logging.getLogger()} | {name: one for name, one in manager if isinstance(one, logging.Logger)}

"""Log levels as a resource of the config APIs (KIP-412): Kafka's names for them, and loggers by their names.

"root" is the logger of the whole package; programs that embed the broker keep the levels of their own loggers.
"""

from __future__ import annotations

import logging

from moldau.settings import DELETE, SET
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ROOT, PACKAGE = "root", "moldau"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def loggers() -> dict[str, logging.Logger]:
    """Return every logger of the package that is in use, under the name that clients know it by."""
    known = logging.Logger.manager.loggerDict.items()
    inner = {name: one for name, one in known if name.startswith(f"{PACKAGE}.") and isinstance(one, logging.Logger)}
    return {ROOT: logging.getLogger(PACKAGE)} | inner


def levels() -> dict[str, str]:
    """Return the level that is in effect for each logger."""
    return {name: level_name(logger.getEffectiveLevel()) for name, logger in loggers().items()}


def level_name(level: int) -> str:
    """Return the nearest of Kafka's levels that lets as much through."""
    return next((name for name, least in LEVELS.items() if level <= least), "FATAL")


def check_level(name: str, operation: int, level: str | None) -> None:
    """Refuse a change of a logger's level, in Kafka's order."""
    if operation not in (SET, DELETE):
        raise Refused(Error.INVALID_REQUEST, f"A log level is set or deleted; operation {operation} is neither.")
    if operation == SET and level not in LEVELS:
        raise Refused(Error.INVALID_CONFIG, f"There is no log level {level}; there are {', '.join(LEVELS)}.")
    if name not in loggers():
        raise Refused(Error.INVALID_CONFIG, f"There is no logger '{name}'.")
    if operation == DELETE and name == ROOT:
        raise Refused(Error.INVALID_REQUEST, "The root logger needs a level.")


def change_level(name: str, operation: int, level: str | None) -> None:
    """Set a level, or let the logger have that of its parent again."""
    loggers()[name].setLevel(LEVELS[level] if operation == SET and level else logging.NOTSET)

"""Structured logs on stderr: `key=value` text, or one JSON object a line.

The standard `logging` module carries them, so a program that embeds the broker can send them elsewhere. Fields go in
as keyword arguments: `log = logs.get(__name__)`, then `log.info("closed", peer=peer, reason=reason)`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
QUIET_S = 10.0
LINES = 10
PEERS = 1024
FILE_BYTES = 64 << 20
FILES = 8


def to_file(name: str, path: str) -> None:
    """Write the lines of a logger as JSON to a file of their own, which only its owner can read and is rotated."""
    import os
    from logging.handlers import RotatingFileHandler

    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", delay=True)
    handler.setFormatter(Json())
    logger = logging.getLogger(name)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


@contextmanager
def errors_only() -> Iterator[None]:
    """Keep warnings and less to ourselves for a while: records that cannot be read are a part of tests of SQL."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class Log:
    """A named logger whose lines carry fields."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def _write(self, level: int, text: str, fields: dict[str, Any], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, text, extra={"fields": fields}, exc_info=error)

    def debug(self, text: str, /, **fields: Any) -> None:
        self._write(logging.DEBUG, text, fields)

    def info(self, text: str, /, **fields: Any) -> None:
        self._write(logging.INFO, text, fields)

    def warning(self, text: str, /, **fields: Any) -> None:
        self._write(logging.WARNING, text, fields)

    def error(self, text: str, error: BaseException | None = None, /, **fields: Any) -> None:
        self._write(logging.ERROR, text, fields, error)


def get(name: str) -> Log:
    """Return the log of a module."""
    return Log(name)


def set_up(form: str = "text", level: str = "info", stream: TextIO | None = None) -> None:
    """Send the logs of this package to stderr in the given form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Json() if form == "json" else Text())
    logger = logging.getLogger("moldau")
    logger.handlers[:] = [handler]
    logger.setLevel(LEVELS[level])
    logger.propagate = False


def _when(record: logging.LogRecord) -> str:
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{second}.{int(record.msecs):03d}Z"


def _quoted(value: Any) -> str:
    text = str(value)
    if text and text.isprintable() and not any(c in text for c in ' ="\\'):
        return text
    return _json(text)


def _json(value: Any) -> str:
    import json  # late: a start has nothing to quote

    return json.dumps(value, default=str, ensure_ascii=isinstance(value, str))


class Text(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO server closed peer=127.0.0.1:5 reason="..."`: one line an event."""

    def format(self, record: logging.LogRecord) -> str:
        name = record.name.rpartition(".")[2]
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in getattr(record, "fields", {}).items())
        message = record.getMessage().replace("\n", "\\n")
        line = f"{_when(record)} {record.levelname} {name} {message}{pairs}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _json(line)


class Quota:
    """Lets through a few lines for each peer and says how many it kept back: garbage must not fill the disk."""

    __slots__ = ("_peers", "_time")

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._time = monotonic
        self._peers: dict[str, list[float]] = {}

    def admit(self, peer: str) -> int | None:
        """Return how many lines of this peer were kept back before this one; None means: say nothing."""
        now = self._time()
        begin, written, kept = self._peers.get(peer, (now, 0, 0))
        if now - begin >= QUIET_S:
            begin, written = now, 0
        if written >= LINES:
            self._peers[peer] = [begin, written, kept + 1]
            return None
        if peer not in self._peers and len(self._peers) >= PEERS:
            self._peers.pop(next(iter(self._peers)))
        self._peers[peer] = [begin, written + 1, 0]
        return int(kept)

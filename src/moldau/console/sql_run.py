"""A run of the editor: statements in a thread of its own, whose results are taken as they come."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from moldau.sql.shell import entities, faults
from moldau.sql.shell.names import load
from moldau.sql.shell.remote import RemoteError, Scope, Server
from moldau.sql.shell.shell import ERROR, HINT, Shell
from moldau.sql.shell.statements import column_names, is_query

KEPT = 1000  # rows of an answer that are shown
Row = tuple[float, Sequence[Any]]  # when it came, and its values


class Run:
    """Executes statements one after the other. `lines` is what is told, `rows` those of the last query."""

    def __init__(self, url: str, statements: Sequence[str], scope: Scope) -> None:
        self._server, self._statements, self._scope = Server(url), statements, scope
        self._stopped = threading.Event()
        self.lines: deque[tuple[str, str]] = deque(maxlen=KEPT)
        self.columns: list[str] = []
        self.rows: deque[Row] = deque(maxlen=KEPT)
        self.count = 0
        self.done = False
        self._shell = Shell(self._server, lambda line, meaning: self.lines.append((line, meaning)), scope=scope)
        self._thread = threading.Thread(target=self._run, name="sql editor", daemon=True)

    def start(self) -> Run:
        self._thread.start()
        return self

    def stop(self) -> None:
        """End it, also while it waits for rows."""
        self._stopped.set()
        self._server.interrupt()

    def _run(self) -> None:
        try:
            for statement in self._statements:
                if self._stopped.is_set() or not self._one(statement):
                    return
        finally:
            self.done = True
            self._server.close()

    def _one(self, statement: str) -> bool:
        if not is_query(statement):
            return self._shell.one(statement)
        try:
            self._query(statement)
        except RemoteError as error:
            if not self._stopped.is_set():
                self._refused(statement, error)
            return False
        return True

    def _query(self, statement: str) -> None:
        self.rows.clear()
        self.columns, self.count = [], 0
        with self._server.query(f"{statement};", self._scope) as parts:
            for part in parts:
                if self._stopped.is_set():
                    return
                self._take(part)

    def _take(self, part: Any) -> None:
        if isinstance(part, str):
            self.lines.append((part, ""))
        elif "header" in part:
            self.columns = column_names(part["header"]["schema"])
        elif "row" in part:
            self.rows.append((time.time(), part["row"].get("columns") or []))
            self.count += 1
        elif "errorMessage" in part:
            raise RemoteError(str(part["errorMessage"].get("message")), 50000)
        elif "finalMessage" in part:
            self.lines.append((str(part["finalMessage"]), ""))

    def _refused(self, statement: str, error: RemoteError) -> None:
        names = load(self._server) if error.code and faults.wants_names(error.message) else None
        for entity in error.entities:
            self.lines.extend((line, "") for line in entities.lines(entity))
        self.lines.extend((line, ERROR) for line in error.message.split("\n"))
        fault = faults.locate(statement, error.message, names)
        if fault is not None:
            self.lines.extend((line, HINT) for line in faults.lines(statement, fault))

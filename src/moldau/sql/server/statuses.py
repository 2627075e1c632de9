"""What came of commands, for GET /status: of several with one id, such as `stream/S/create`, the last one counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.catalogue import Source
from moldau.sql.parser import parse
from moldau.sql.server import entities
from moldau.sql.server.commands import TERMINATE_CLUSTER, Command, Executed, Overtaken


@dataclass(frozen=True, slots=True)
class Status:
    statement: str
    done: Executed
    before: Source | None  # the source of that name until then

    @property
    def word(self) -> str:
        return "SUCCESS" if self.done.error is None else "ERROR"

    def document(self) -> dict[str, Any]:
        """Return what ksqlDB says of a command."""
        message = self.done.message or entities.success(parse(self.statement)[0], self.done.plan, self.before)
        return {"status": self.word, "message": message, "queryId": self.done.query_id}


@dataclass(slots=True)
class Statuses:
    known: dict[str, Status] = field(default_factory=dict)

    def noted(self, command: Command, done: Executed, before: Mapping[str, Source]) -> Executed:
        """Note what came of a command, and return it. One that was overtaken is sent again."""
        if command.id == TERMINATE_CLUSTER:
            self.known.clear()
        elif not isinstance(done.error, Overtaken):
            name = command.id.partition("/")[2].rpartition("/")[0]
            self.known[command.id] = Status(command.statement, done, before.get(name))
        return done

    def of(self, kind: str, name: str, action: str) -> Status | None:
        """Find a command by the parts of its id; the name may have back quotes, as in ids of ksqlDB."""
        return self.known.get(f"{kind.lower()}/{name.strip('`')}/{action.lower()}")

"""Commands: the statements that change the catalogue, in the form and the order of ksqlDB's command topic.

A command is written, read back, and only then executed; so all servers of a service execute the same commands in the
same order, and a command that one of them refuses is refused by all.

What makes a source or a query is planned by the server that was asked, and the plan is written beside the text: whoever
reads the command, of whatever release, runs what was planned. A plan holds for the catalogue that it was made with. It
names the last command before it (`after`); if another one was executed in between, everybody ignores the command, and
the server that wrote it plans anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, CreateFunction, CreateView, DropFunction, DropView
from moldau.sql.parser import parse
from moldau.sql.plan_json import decoded, encoded
from moldau.sql.server.errors import NOT_CAUGHT_UP, ServerError
from moldau.sql.steps import Planned, QueryPlan
from moldau.sql.tree import (
    AlterSource,
    AlterSystem,
    CreateAs,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertInto,
    QueryControl,
    Statement,
)

VERSION = 17  # of the format of commands
PLAN = "moldauPlanV1"
BEFORE_ALL = -1  # as number of a command
TOO_LATE = "Timed out while waiting for a previous command to execute. command sequence number: {}"  # in ksqlDB's words
TERMINATE_CLUSTER = "cluster/TerminateCluster/terminate"  # the id of the command that ends everything


@dataclass(frozen=True, slots=True)
class Plan:
    """What a statement does, and the number of the command that was the last one when that was decided."""

    planned: Planned
    after: int

    @staticmethod
    def of(document: Any) -> Plan:
        """Read the plan of a command; ValueError if it is none."""
        try:
            if document["@type"] != PLAN:
                raise ValueError(f"its plan is of the kind {document['@type']}, which this release does not know")
            return Plan(decoded(document["planned"]), int(document["after"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"its plan cannot be read: {error!r}") from None


@dataclass(frozen=True, slots=True)
class Command:
    """A statement with the properties of its request. `id` is type/name/action."""

    id: str
    statement: str
    properties: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None

    def key(self) -> bytes:
        return json.dumps(self.id).encode()

    def value(self) -> bytes:
        plan = self.plan and {"@type": PLAN, "after": self.plan.after, "planned": encoded(self.plan.planned)}
        return json.dumps(
            {
                "statement": self.statement,
                "streamsProperties": self.properties,
                "originalProperties": {},
                "plan": plan,
                "version": VERSION,
            }
        ).encode()

    @staticmethod
    def of(key: bytes | None, value: bytes | None) -> Command:
        """Read a record of the command topic; ValueError if it is none."""
        fields = json.loads(value or b"")
        if not isinstance(fields, dict) or not isinstance(fields.get("statement"), str):
            raise ValueError("it has no statement")
        plan = None if fields.get("plan") is None else Plan.of(fields["plan"])
        properties = dict(fields.get("streamsProperties") or {})
        return Command(str(json.loads(key or b'""')), fields["statement"], properties, plan)


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of a command: its place in the order of all commands, a message, the query that it started."""

    number: int
    message: str
    query_id: str | None = None
    error: Exception | None = None
    plan: QueryPlan | None = None


class Commands(Protocol):
    """Where commands go. `submit` returns when the command has been executed here, `catch_up` when all have been that
    were there before, those of other servers too, and `reach` when all up to a number have been.
    """

    def submit(self, command: Command) -> Executed: ...

    def catch_up(self) -> None: ...

    def reach(self, number: int) -> None: ...


@dataclass(slots=True)
class MemoryCommands:
    """The commands of a server that is alone and keeps nothing."""

    execute: Callable[[int, Command], Executed]
    count: int = 0

    def submit(self, command: Command) -> Executed:
        self.count += 1
        return self.execute(self.count - 1, command)

    def catch_up(self) -> None:
        return

    def reach(self, number: int) -> None:
        if number >= self.count:
            raise ServerError(NOT_CAUGHT_UP, TOO_LATE.format(number))


def command_id(statement: Statement) -> str | None:
    """Return the id of a statement's command; None if the statement is no command."""
    match statement:
        case CreateSource() | CreateAs():
            return f"{statement.kind.lower()}/{statement.name}/create"
        case InsertInto():
            return f"stream/{statement.name}/create"
        case DropSource():
            return f"{statement.kind.lower()}/{statement.name}/drop"
        case AlterSource():
            return f"{statement.kind.lower()}/{statement.name}/alter"
        case CreateType():
            return f"type/{statement.name}/create"
        case DropType():
            return f"type/{statement.name}/drop"
        case CreateFunction() | DropFunction():
            return f"function/{statement.name}/{'create' if isinstance(statement, CreateFunction) else 'drop'}"
        case CreateView() | DropView():
            return f"view/{statement.name}/{'create' if isinstance(statement, CreateView) else 'drop'}"
        case AlterSystem():
            return f"cluster/{statement.name}/alter"
        case QueryControl():
            return f"{statement.action.lower()}/{statement.query_id or 'ALL'}/execute"
        case _:
            return None


class Overtaken(SqlError):
    """A plan that was made before another command was executed: it must be made anew."""


def replay(engine: Engine, number: int, command: Command, settings: Mapping[str, Any]) -> QueryPlan | None:
    """Let a command change the catalogue, and return the query that it starts; SqlError if it is refused.

    This is the only way by which servers and workers learn of statements, so all of them have the same catalogue.
    """
    engine.count = number
    if command.plan is not None:
        if command.plan.after != engine.position:
            raise Overtaken("Other statements were executed at the same time. Send the statement again.")
        started = engine.carry_out(command.plan.planned)
    elif command.id == TERMINATE_CLUSTER:
        started = None
        engine.forget_all()
    else:
        engine.settings = {**settings, **command.properties, DIALECT: ""}  # whoever was asked has checked the dialect
        try:
            started = engine.execute(parse(command.statement)[0])
        finally:
            engine.settings = {}
    engine.position = number
    return started

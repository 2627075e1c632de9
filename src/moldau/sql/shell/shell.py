"""The shell without its terminal: it executes commands and statements, and writes what comes of them.

A statement is sent as it is typed. Only SET, UNSET, DEFINE and UNDEFINE stay here: what they set goes along with each
request. Commands (COMMANDS) are words that ksqlDB's shell knows; they need no semicolon.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from moldau.sql.errors import SqlError
from moldau.sql.parser import parse
from moldau.sql.shell import entities, faults
from moldau.sql.shell.names import Names, load
from moldau.sql.shell.remote import RemoteError, Scope, Server
from moldau.sql.shell.statements import column_names, is_query, split, unquoted, words
from moldau.sql.shell.tables import Grid, clip
from moldau.sql.tree import Define, SetProperty, Undefine, UnsetProperty
from moldau.sql.variables import substitute

TABULAR, JSON = "TABULAR", "JSON"
FORMATS = (TABULAR, JSON)
MOST_SCRIPTS = 16  # that run each other
PLAIN, ERROR, HINT = "", "error", "hint"  # how a line is meant
HISTORY = 500


class Failed(Exception):
    """A command or a statement that failed; the text says why."""


@dataclass(slots=True)
class Options:
    """How results are written and bounded. A width of None is one that has no end: a pipe."""

    output: str = TABULAR
    row_limit: int | None = None
    limit_s: float | None = None
    wrapping: bool = True
    column_width: int | None = None
    width: Callable[[], int | None] = lambda: None
    pipelining: bool = False


@dataclass(slots=True)
class Shell:
    """A conversation with a server. `write` takes a line and how it is meant; `waiting` wraps what may take long."""

    server: Server
    write: Callable[[str, str], None]
    options: Options = field(default_factory=Options)
    scope: Scope = field(default_factory=Scope)
    waiting: Callable[[str], AbstractContextManager[Any]] = lambda what: nullcontext()
    clear: Callable[[], None] = lambda: None
    ended: bool = False
    history: list[str] = field(default_factory=list)
    changes: int = 0  # how many statements have succeeded: names that were loaded before may be old
    _spool: TextIO | None = None
    _depth: int = 0

    def run(self, text: str) -> bool:
        """Execute all of a text; stop at the first thing that fails, and return whether none did."""
        statements, rest = split(text)
        for statement in (*statements, *([rest] if rest else ())):
            if not self.one(statement, complete=statement is not rest):
                return False
            if self.ended:
                break
        return True

    def one(self, statement: str, complete: bool = True) -> bool:
        """Execute a command or a statement, and return whether it succeeded."""
        self.history = [*self.history[-HISTORY + 1 :], statement]
        if self._spool is not None:
            self._spool.write(f"ksql> {statement};\n")
        try:
            command = find(statement)
            if command is not None:
                command.run(self, _argument(statement, command))
            elif not complete:
                raise Failed(f"The statement does not end with a semicolon: {clip(statement, 60)}")
            else:
                self._statement(statement)
        except Failed as error:
            self.write_line(str(error), ERROR)
            return False
        except RemoteError as error:
            self._refused(statement, error)
            return False
        return True

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()
        self.server.close()

    # Writing

    def write_line(self, line: str, meaning: str = PLAIN) -> None:
        self.write(line, meaning)
        if self._spool is not None:
            self._spool.write(line + "\n")

    def write_entity(self, entity: Any) -> None:
        if self.options.output == JSON:
            self.write_line(entities.json_text(entity))
            return
        for line in entities.lines(entity, self.options.width()):
            self.write_line(line)

    def _refused(self, statement: str, error: RemoteError) -> None:
        for entity in error.entities:
            self.write_entity(entity)
        fault = faults.locate(statement, error.message, self._names(error))
        for line in error.message.split("\n"):
            self.write_line(line, ERROR)
        if fault is not None:
            for line in faults.lines(statement, fault):
                self.write_line(line, HINT)

    def _names(self, error: RemoteError) -> Names | None:
        if not error.code or not faults.wants_names(error.message):
            return None
        with contextlib.suppress(RemoteError):
            return load(self.server)
        return None

    # Statements

    def _statement(self, statement: str) -> None:
        if words(statement, 1)[0] in ("SET", "UNSET", "DEFINE", "UNDEFINE"):
            self._set(statement)
        elif is_query(statement):
            self._query(statement + ";")
        else:
            with self.waiting("Executing"):
                answers = self.server.execute(statement + ";", self.scope)
            self.changes += 1
            for entity in answers:
                if not self.options.pipelining:  # the next request waits until the server has executed this one
                    self.scope.sequence = entity.get("commandSequenceNumber", self.scope.sequence)
                self.write_entity(entity)

    def _set(self, statement: str) -> None:
        try:
            (parsed,) = parse(substitute(statement, self.scope.variables))
        except SqlError as error:
            raise RemoteError(str(error), 40001) from None
        match parsed:
            case SetProperty():
                if not self.server.knows_property(parsed.name):
                    raise Failed(f"Not recognizable as ksql, streams, consumer, or producer property: '{parsed.name}'")
                self.scope.properties[parsed.name] = parsed.value
                self.write_line(
                    f"Successfully changed local property '{parsed.name}' to '{parsed.value}'. "
                    "Use the UNSET command to revert your change."
                )
            case UnsetProperty():
                if parsed.name not in self.scope.properties:
                    raise Failed(f"Cannot unset local property '{parsed.name}' which was never set in the first place")
                before = self.scope.properties.pop(parsed.name)
                self.write_line(f"Successfully unset local property '{parsed.name}' (value was '{before}').")
            case Define():
                self.scope.variables[parsed.name] = parsed.value
            case Undefine():
                if self.scope.variables.pop(parsed.name, None) is None:
                    self.write_line(f"Cannot undefine variable '{parsed.name}' which was never defined")
            case _:
                raise AssertionError(f"{statement} is for the server")

    def _query(self, statement: str) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the query, not the shell
            with self.server.query(statement, self.scope, self.options.limit_s) as parts:
                for line in self._rows(parts):
                    self.write_line(line)
            return
        self.write_line("Query terminated")

    def _rows(self, parts: Iterator[Any]) -> Iterator[str]:
        """Yield the lines of an answer: those of PRINT as they are, rows in a grid."""
        grid: Grid | None = None
        count = 0
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            if self.options.output == JSON:
                yield json.dumps(part, ensure_ascii=False)
            elif "header" in part:
                grid = self._grid(column_names(part["header"]["schema"]))
                yield from grid.head()
            elif grid is not None and "row" in part:
                yield from grid.row(_values(part["row"], len(grid.names)))
            elif "finalMessage" in part:
                yield str(part["finalMessage"])
            if "errorMessage" in part:
                raise Failed(str(part["errorMessage"].get("message")))
            count += "row" in part
            if count == self.options.row_limit:
                break
        if grid is not None:
            yield "Query terminated"

    def _grid(self, columns: list[str]) -> Grid:
        options = self.options
        return Grid(columns, options.width(), options.column_width, options.wrapping)

    # Commands

    def spool(self, path: str | None) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        elif path is None:
            raise Failed("Nothing is spooled.")
        if path is not None:
            try:
                self._spool = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 (open until `spool off`)
            except OSError as error:
                raise Failed(f"{path} cannot be written: {error.strerror}.") from None

    def script(self, path: str) -> None:
        """Run a file of statements in this conversation."""
        if self._depth >= MOST_SCRIPTS:
            raise Failed(f"At most {MOST_SCRIPTS} scripts may run each other.")
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Failed(f"Failed to read file: {path}: {getattr(error, 'strerror', None) or 'not UTF-8'}.") from None
        self._depth += 1
        try:
            if not self.run(text):
                raise Failed(f"{path} was not executed to its end.")
        finally:
            self._depth -= 1

    def connect(self, url: str) -> None:
        """Go on with another server, if it answers."""
        other = self.server.at(url)
        try:
            other.info()
        except RemoteError as error:
            other.close()
            raise Failed(error.message) from None
        self.server.close()
        self.server = other
        self.scope.sequence = None
        self.changes += 1


def _values(row: Any, count: int) -> list[Any]:
    columns = list(row.get("columns") or [])
    if row.get("tombstone"):
        columns = [*columns, *["<TOMBSTONE>"] * (count - len(columns))]
    return columns


class Command(NamedTuple):
    """A command of the shell: its words, what follows them, what it does."""

    words: str
    argument: str
    help: str
    run: Callable[[Shell, str], None]


def find(text: str) -> Command | None:
    """Return the command that a text begins with."""
    first = words(text, 8)
    rows = sorted(COMMANDS, key=lambda row: -len(row.words.split()))
    for row in rows:
        count = len(row.words.split())
        if first[:count] == row.words.upper().split() and (row.argument or len(first) == count):
            return row
    return None


def _argument(text: str, command: Command) -> str:
    rest = text.strip().rstrip(";").strip()
    for _ in command.words.split():
        rest = rest.partition(" ")[2].strip() if " " in rest else ""
    return unquoted(rest)


def _required(argument: str, what: str) -> str:
    if not argument:
        raise Failed(f"Name {what}.")
    return argument


def _help(shell: Shell, argument: str) -> None:
    shell.write_line("Commands of the shell:")
    for row in COMMANDS:
        shell.write_line(f"  {f'{row.words} {row.argument}'.strip():<28} {row.help}")
    shell.write_line("Everything else is sent to the server up to the next semicolon. Ctrl-C ends a query that runs.")


def _output(shell: Shell, argument: str) -> None:
    if not argument:
        shell.write_line(f"Current output format: {shell.options.output}")
        return
    if argument.upper() not in FORMATS:
        raise Failed(f"Invalid output format: '{argument}' (valid formats: 'JSON', 'TABULAR')")
    shell.options.output = argument.upper()
    shell.write_line(f"Output format set to {shell.options.output}")


def _server(shell: Shell, argument: str) -> None:
    if argument:
        shell.connect(argument)
    shell.write_line(shell.server.url)


def _switch(argument: str, what: str) -> bool:
    if argument.upper() not in ("ON", "OFF"):
        raise Failed(f"Invalid {what} setting: '{argument}' (valid settings: 'ON', 'OFF')")
    return argument.upper() == "ON"


def _pipelining(shell: Shell, argument: str) -> None:
    if argument:
        shell.options.pipelining = _switch(argument, "request-pipelining")
        shell.scope.sequence = None
    shell.write_line(f"Current request-pipelining configuration: {'ON' if shell.options.pipelining else 'OFF'}")


def _wrap(shell: Shell, argument: str) -> None:
    shell.options.wrapping = _switch(argument, "wrap")


def _column_width(shell: Shell, argument: str) -> None:
    if not argument.isdecimal():
        raise Failed(f"Invalid column width: '{argument}'. It is a number; 0 lets columns share the width.")
    shell.options.column_width = int(argument) or None


def _properties(shell: Shell, argument: str) -> None:
    options = shell.options
    facts = {
        "output": options.output,
        "wrap": "ON" if options.wrapping else "OFF",
        "column-width": options.column_width or "shared",
        "request-pipelining": "ON" if options.pipelining else "OFF",
        **{f"set {name}": value for name, value in shell.scope.properties.items()},
    }
    for name, value in facts.items():
        shell.write_line(f"{name}: {value}")


def _history(shell: Shell, argument: str) -> None:
    for number, statement in enumerate(shell.history[:-1], 1):
        shell.write_line(f"{number:4}: {' '.join(statement.split())}")


def _version(shell: Shell, argument: str) -> None:
    shell.write_line(f"Version: {shell.server.info().get('version')}")


def _exit(shell: Shell, argument: str) -> None:
    shell.ended = True


def _script(shell: Shell, argument: str) -> None:
    shell.script(_required(argument, "the file to run"))


def _spool(shell: Shell, argument: str) -> None:
    path = _required(argument, "the file to write to, or OFF")
    shell.spool(None if path.upper() == "OFF" else path)


COMMANDS = (
    Command("help", "", "Show this list.", _help),
    Command("clear", "", "Clear the screen.", lambda shell, argument: shell.clear()),
    Command("history", "", "Show the statements of this session.", _history),
    Command("output", "[TABULAR|JSON]", "Show or set how results are written.", _output),
    Command("spool", "FILE|OFF", "Write all that is shown to a file, too; end that.", _spool),
    Command("run script", "FILE", "Execute the statements of a file.", _script),
    Command("server", "[URL]", "Show the server, or connect to another one.", _server),
    Command("request-pipelining", "[ON|OFF]", "Show or set whether statements wait for those before.", _pipelining),
    Command("set cli wrap", "ON|OFF", "Wrap long values of rows, or clip them.", _wrap),
    Command("set cli column-width", "NUMBER", "Set the width of the columns of rows; 0 shares it.", _column_width),
    Command("cli properties", "", "Show the settings of the shell.", _properties),
    Command("version", "", "Show the version of the server.", _version),
    Command("exit", "", "Leave the shell.", _exit),
    Command("quit", "", "Leave the shell.", _exit),
)

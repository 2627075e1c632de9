"""`moldau sql diff` and `moldau sql apply`: what a file of statements would change on a server, and doing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from moldau.admin.mistakes import NO, Mistake
from moldau.cli.commands import DryRun
from moldau.cli.ksql.shell import defined
from moldau.cli.session import Session
from moldau.cli.sql_verbs import DEFINE, SERVER, USER, File, remote, verb
from moldau.sql.errors import SqlError
from moldau.sql.shell.remote import RemoteError, Scope, Server
from moldau.sql.tools.changes import Change, changes
from moldau.sql.tools.present import NotKnown, present

COLUMNS = ("action", "what", "query", "reads", "writes", "readers", "state", "reason")


@verb("diff", "moldau sql diff queries.sql", "moldau sql diff queries.sql -o json")
def diff(
    session: Session,
    file: File,
    server: str | None = SERVER,
    user: str | None = USER,
    define: list[str] | None = DEFINE,
) -> None:
    """Show what the statements of a file would change on a server. The exit code is 3 if there is a change.

    For each it says whether it is created, replaced, dropped, unchanged or refused by the rules of CREATE OR REPLACE,
    which topics it reads and writes, which queries read what changes, and which state survives.
    """
    with _answers(remote(server, user)) as there:
        found = _compared(there, file, define)
    _show(session, found)
    if any(one.action != "unchanged" for one in found):
        raise typer.Exit(NO)


@verb("apply", "moldau sql apply queries.sql", "moldau sql apply queries.sql --dry-run")
def apply(
    session: Session,
    file: File,
    server: str | None = SERVER,
    user: str | None = USER,
    define: list[str] | None = DEFINE,
    dry_run: DryRun = False,
) -> None:
    """Make a server have what a file of statements defines: create, replace and drop what `diff` shows.

    What is there already stays as it is. If one statement is refused, none is executed.
    """
    with _answers(remote(server, user)) as there:
        found = _compared(there, file, define)
        refused = [one for one in found if one.action == "refused"]
        if refused:
            _show(session, refused)
            raise Mistake("Nothing was changed, because something cannot be.", NO)
        done = found if dry_run else [_applied(there, one) for one in found]
    _show(session, done)


def _applied(there: Server, change: Change) -> Change:
    """Make a change, and return it with the id that the server gave to its query."""
    if not change.text:
        return change
    answers = there.execute(change.text, Scope(dict(change.settings or {})))
    ids = [status["queryId"] for one in answers if (status := one.get("commandStatus") or {}).get("queryId")]
    return replace(change, query=ids[-1]) if ids else change


@contextmanager
def _answers(server: Server) -> Iterator[Server]:
    """Turn a server that refuses, or is not there, into a sentence."""
    try:
        yield server
    except RemoteError as error:
        hint = "" if error.code else " `moldau up` starts one, and --server names another."
        raise Mistake(f"{error.message}{hint}") from None
    finally:
        server.close()


def _compared(server: Server, file: Path, define: list[str] | None) -> list[Change]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None
    try:
        return changes(text, present(server), defined(define or ()))
    except (SqlError, NotKnown) as error:
        raise Mistake(f"{file}: {error}") from None


def _show(session: Session, found: list[Change]) -> None:
    rows = [_row(one) for one in found]
    used = [name for name in COLUMNS if any(row[name] for row in rows)]
    session.show(rows, used if session.for_people else (), "The file has no definitions.")


def _row(one: Change) -> dict[str, Any]:
    return {
        "action": one.action,
        "what": one.what,
        "line": one.line,
        "query": one.query,
        "reads": list(one.reads),
        "writes": one.writes,
        "readers": list(one.readers),
        "state": one.state,
        "reason": one.reason,
    }

"""`moldau sql`: the shell, and the verbs that talk to a SQL server."""

from __future__ import annotations

import typer

from moldau.admin.mistakes import FAILED, MISUSED, Mistake
from moldau.cli.commands import handle_errors, leave
from moldau.cli.ksql import shell as ksql
from moldau.cli.options import option
from moldau.cli.session import Session
from moldau.cli.sql_verbs import DEFINE, SERVER, USER, File, cli, login, verb
from moldau.sql.shell.remote import DEFAULT_URL
from moldau.sql.shell.shell import TABULAR


@cli.callback(invoke_without_command=True)
def sql(
    context: typer.Context,
    server: str | None = SERVER,
    user: str | None = USER,
    execute: str | None = option("--execute -e", "Execute these statements, and exit.", metavar="SQL"),
    define: list[str] | None = DEFINE,
) -> None:
    """Talk to a SQL server in ksqlDB's language: without a verb this is a shell.

    It completes names of the live catalogue with Tab, keeps its history, and works on servers of ksqlDB, too.
    `moldau ksql` is the same with all flags of ksqlDB's own shell.
    """
    if context.invoked_subcommand is None:
        with handle_errors(context.command_path):
            variables = ksql.defined(define or ())
            given = ksql.Given(server or DEFAULT_URL, login(user), execute=execute, variables=variables)
            raise typer.Exit(_code(ksql.start(given)))
    elif execute is not None:
        leave(context.command_path, f"Write --execute without {context.invoked_subcommand}.", MISUSED)
    elif typed := [name for name in ("server", "user", "define") if _was_typed(context, name)]:
        flags = " and ".join(f"--{name}" for name in typed)
        leave(context.command_path, f"Write {flags} after {context.invoked_subcommand}.", MISUSED)


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _code(code: int) -> int:
    return FAILED if code else code


@verb("run", "moldau sql run queries.sql", "moldau sql run queries.sql --define topic=orders -o json")
def run(
    session: Session,
    file: File,
    server: str | None = SERVER,
    user: str | None = USER,
    define: list[str] | None = DEFINE,
) -> None:
    """Execute the statements of a file on a server, one after the other, up to the first that fails."""
    if not file.exists():
        raise Mistake(f"{file} does not exist.", MISUSED)
    given = ksql.Given(
        server or DEFAULT_URL,
        login(user),
        TABULAR if session.for_people else "JSON",
        file=file,
        variables=ksql.defined(define or ()),
    )
    code = ksql.start(given)
    if code:
        raise typer.Exit(_code(code))

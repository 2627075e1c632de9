"""The noun `sql` and what its verbs share: the server that they talk to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moldau.admin.mistakes import misused
from moldau.cli.commands import NO_CLUSTER, noun
from moldau.cli.options import option
from moldau.sql.shell.remote import DEFAULT_URL, SERVER_VARIABLE, Server

cli, verb = noun(NO_CLUSTER)
cli.info.no_args_is_help = False  # `moldau sql` alone is the shell

SERVER = option(
    "--server -s", f"URL of the SQL server. (otherwise {DEFAULT_URL})", envvar=SERVER_VARIABLE, metavar="URL"
)
USER = option("--user -u", "Log in with basic authentication.", envvar="MOLDAU_SQL_USER", metavar="NAME:PASSWORD")
File = Annotated[Path, typer.Argument(metavar="FILE", help="File of SQL statements.")]
DEFINE = option("--define -d", "Define a variable; repeatable.", metavar="NAME=VALUE")


def login(user: str | None) -> tuple[str, str] | None:
    """Read NAME:PASSWORD."""
    if user is None:
        return None
    name, colon, password = user.partition(":")
    if not colon or not name:
        raise misused("--user is NAME:PASSWORD.")
    return name, password


def remote(server: str | None, user: str | None) -> Server:
    """Return the server that a command talks to."""
    return Server(server or DEFAULT_URL, login(user))

"""`ksql`: ksqlDB's shell with its flags and exit codes. `moldau sql` is the same shell."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.admin.mistakes import Mistake
from moldau.settings import SettingError
from moldau.settings.properties import read_properties
from moldau.sql.shell.remote import DEFAULT_URL, SERVER_VARIABLE, RemoteError, Scope, Server
from moldau.sql.shell.shell import FORMATS, TABULAR, Options, Shell

OK, FAILED = 0, 255  # ksqlDB's shell exits with -1
BOTH = (
    "You must specify both a username and a password. If you don't want to use an authenticated session, don't specify "
    "either of these options."
)
NOT_SETTINGS = ("ksql.server.url", "ssl.", "ksql.auth.", "ksql.ssl.")  # of the shell, not of statements


@dataclass(slots=True)
class Given:
    """What a command line asks the shell for."""

    server: str = DEFAULT_URL
    auth: tuple[str, str] | None = None
    output: str = TABULAR
    row_limit: int | None = None
    timeout_ms: int | None = None
    execute: str | None = None
    file: Path | None = None
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    certificates: dict[str, Any] = field(default_factory=dict)


def run(arguments: Sequence[str]) -> int:
    """Run `ksql` with a command line."""
    try:
        return start(read(arguments))
    except Mistake as error:
        print(f"ksql: {error}", file=sys.stderr)
        return FAILED


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("ksql", description="Talk to a SQL server: statements, queries, scripts.")
    add = made.add_argument
    add("server", nargs="?", metavar="SERVER", help=f"URL of the server; otherwise {DEFAULT_URL}.")
    add("--config-file", metavar="FILE", type=Path, help="Read properties of statements, and TLS, from this file.")
    add("-u", "--user", metavar="NAME", help="Log in with this name.")
    add("-p", "--password", nargs="?", const="", metavar="PASSWORD", help="Log in with this password.")
    add("--confluent-api-key", metavar="KEY", help="Log in with this key, as with --user.")
    add("--confluent-api-secret", metavar="SECRET", help="Log in with this secret, as with --password.")
    add("--query-row-limit", type=int, metavar="N", help="End queries after this many rows.")
    add("--query-timeout", type=int, metavar="MS", help="End queries after this time.")
    add("--output", type=str.upper, choices=FORMATS, default=TABULAR, help="Choose how results are written.")
    add("-e", "--execute", metavar="SQL", help="Execute these statements, and exit.")
    add("-f", "--file", metavar="FILE", type=Path, help="Execute the statements of this file, and exit.")
    add("-d", "--define", action="append", default=[], metavar="NAME=VALUE", help="Define a variable; repeatable.")
    return made


def read(arguments: Sequence[str]) -> Given:
    """Read a command line. Mistake where it asks for the impossible; argparse exits for what it cannot read."""
    named = parser().parse_args(list(arguments))
    if named.execute is not None and named.file is not None:
        raise Mistake("Cannot specify both --execute and --file.")
    for name in ("query_row_limit", "query_timeout"):
        value = getattr(named, name)
        if value is not None and value <= 0:
            raise Mistake(f"--{name.replace('_', '-')} must be more than 0.")
    settings = {} if named.config_file is None else properties_of(named.config_file)
    user, password = named.user or named.confluent_api_key, named.password
    if named.confluent_api_secret is not None:
        password = named.confluent_api_secret
    return Given(
        server=named.server or settings.get("ksql.server.url") or os.environ.get(SERVER_VARIABLE) or DEFAULT_URL,
        auth=credentials(user, password),
        output=named.output,
        row_limit=named.query_row_limit,
        timeout_ms=named.query_timeout,
        execute=named.execute,
        file=named.file,
        properties={name: value for name, value in settings.items() if not name.startswith(NOT_SETTINGS)},
        variables=defined(named.define),
        certificates=certificates(settings),
    )


def credentials(user: str | None, password: str | None) -> tuple[str, str] | None:
    """Return name and password; a password without a value is asked for."""
    if (user is None) != (password is None):
        raise Mistake(BOTH)
    if user is None or password is None:
        return None
    return user, password or getpass.getpass("Enter password: ")


def defined(texts: Sequence[str]) -> dict[str, str]:
    """Read variables that are given as NAME=VALUE; quotes around the value are not a part of it."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Mistake(f"Variables must be defined using '=' (i.e. var=val). Got: {text}")
        found[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value
    return found


def properties_of(file: Path) -> dict[str, str]:
    """Read a properties file."""
    try:
        return read_properties(str(file))
    except OSError as error:
        raise Mistake(f"{file} cannot be read: {error.strerror}.") from None


def certificates(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return httpx's options for the stores that a file of settings names."""
    chosen = {name: value for name, value in settings.items() if name.startswith("ssl.")}
    if not chosen:
        return {}
    from moldau.tls.contexts import client_context

    try:
        return {"verify": client_context({"ssl.endpoint.identification.algorithm": "https", **chosen}.get)}
    except SettingError as error:
        raise Mistake(f"{error}") from None


def start(given: Given) -> int:
    """Execute what is given, or converse; return the exit code."""
    from moldau.cli.ksql import terminal

    shell = Shell(
        Server(given.server, given.auth, **given.certificates),
        terminal.printing(sys.stdout.isatty()),
        Options(
            output=given.output,
            row_limit=given.row_limit,
            limit_s=None if given.timeout_ms is None else given.timeout_ms / 1000,
            width=terminal.width,
        ),
        Scope(given.properties, given.variables),
        terminal.waiting,
        terminal.clear,
    )
    try:
        return _start(shell, given)
    finally:
        shell.close()


def _start(shell: Shell, given: Given) -> int:
    from moldau.cli.ksql import terminal

    if given.execute is not None:
        return OK if shell.run(given.execute) else FAILED
    if given.file is not None:
        return OK if shell.run(f"RUN SCRIPT '{given.file}';") else FAILED
    if not sys.stdin.isatty():
        return OK if shell.run(sys.stdin.read()) else FAILED
    try:
        about = shell.server.info()
    except RemoteError as error:
        print(f"{error.message}\nStart one with `moldau up`, or name another one.", file=sys.stderr)
        return FAILED
    facts = {"url": shell.server.url, "version": about.get("version"), "service": about.get("ksqlServiceId")}
    print(terminal.GREETING.format(**facts))
    terminal.converse(shell)
    return OK

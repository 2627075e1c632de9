"""`moldau console`: runs the web console until it is stopped."""

from __future__ import annotations

import getpass
import re
import sys
from pathlib import Path

import typer

from moldau.admin import connectors
from moldau.admin.connectors import URL
from moldau.admin.mistakes import MISUSED, Mistake
from moldau.admin.weaknesses import PROPERTIES
from moldau.cli.commands import BOOTSTRAP, CLIENT_SETTINGS, PROFILE, REGISTRY, REGISTRY_URL
from moldau.cli.options import epilog, flag, option
from moldau.cli.services import Config, Overrides, StopWithStdin, read_config, run_service
from moldau.settings import HTTP, SettingError, rows
from moldau.sql.shell.remote import DEFAULT_URL as SQL_URL
from moldau.sql.shell.remote import SERVER_VARIABLE

EPILOG = epilog(
    "moldau console",
    "moldau console -b kafka.example:9092 --schema-registry http://registry.example:8081 --read-only",
    "moldau console --users users.properties --add-user ada",
    "moldau console --users users.properties --listen 0.0.0.0:9021",
)
USERS = "authentication.users.file"
LISTEN = "127.0.0.1:9021"
HOST = LISTEN.partition(":")[0]
NAME = re.compile(r"[\w.@-]{1,100}")
SHORTEST = 8


def cli(
    bootstrap_servers: str | None = BOOTSTRAP,
    registry: str | None = option(
        "--schema-registry --registry -r", REGISTRY_URL, metavar="URL", rich_help_panel=REGISTRY
    ),
    connect: str = option(
        "--connect", f"URL of a worker of Connect; otherwise {URL}.", URL, envvar="MOLDAU_CONNECT_URL", metavar="URL"
    ),
    sql: str = option(
        "--sql", f"URL of a SQL server; otherwise {SQL_URL}.", SQL_URL, envvar=SERVER_VARIABLE, metavar="URL"
    ),
    profile: str | None = PROFILE,
    client_settings: list[str] | None = CLIENT_SETTINGS,
    port: int | None = option("--port", "Port on this machine. (9021)", min=0, max=65535),
    listen: str | None = option("--listen", f"Address to listen on. ({LISTEN})", metavar="HOST:PORT"),
    read_only: bool = flag("--read-only", "Show everything, but change nothing."),
    users: Path | None = option(
        "--users", "Let the users in this file log in; without it all may use it.", metavar="FILE"
    ),
    add_user: str | None = option(
        "--add-user", "Ask for a password, write the user to --users, and exit.", metavar="NAME"
    ),
    allow_host: list[str] | None = option(
        "--allow-host", "Accept this host name too in browsers' requests; repeatable.", metavar="NAME"
    ),
    config: Config = None,
    overrides: Overrides = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run the web console of a cluster, of Moldau or any Kafka.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope http` lists the settings for --set, of HTTPS for example. By default only this machine can connect; to let
    others connect, give --users or --read-only. `--add-user NAME --read-only` adds a user who may change nothing.
    """
    from moldau.cli.session import NO_PROFILE, open_session
    from moldau.console.process import Options, serve

    try:
        if add_user is not None:
            _add(add_user, users, read_only)
            return
        of_http, of_clients = _split(config)
        users = users or (Path(of_http[USERS]) if of_http.get(USERS) else None)
        chosen = [*(f"{name}={text}" for name, text in of_clients.items()), *(client_settings or ())]
        session = open_session(bootstrap_servers, registry, NO_PROFILE if config else profile, chosen)
    except Mistake as error:
        print(f"moldau console: {error}", file=sys.stderr)
        raise typer.Exit(error.code) from None
    where = listen or (LISTEN if port is None else f"{HOST}:{port}")
    given = (*(f"{name}={text}" for name, text in of_http.items()), *(overrides or ()))
    login = connectors.Login.of(session.connection.settings)
    hosts = tuple(allow_host or ())
    options = Options(where, read_only, users, hosts, given, connect, login, sql, folder_of(config))
    run_service("console", lambda: serve(session.connection, options, stop_with_stdin=stop_with_stdin))


def _split(config: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a file of settings says about the console itself, and about its clients."""
    try:
        given = read_config(config)
    except SettingError as error:
        raise Mistake(str(error), MISUSED) from None
    own = rows(HTTP)
    return ({k: v for k, v in given.items() if k in own}, {k: v for k, v in given.items() if k not in own})


def folder_of(config: str | None) -> Path | None:
    """Return the folder of `moldau secure init`, if the file of settings is in one."""
    folder = Path(config).resolve().parent if config else None
    return folder if folder is not None and (folder / PROPERTIES).exists() else None


def _add(name: str, users: Path | None, read_only: bool) -> None:
    from moldau.console import accounts

    if users is None:
        raise Mistake("--add-user needs --users FILE, the file to write the user to.", MISUSED)
    if not NAME.fullmatch(name):
        raise Mistake(f"{name!r} is not a user name: use letters, digits and . _ @ -.", MISUSED)
    password = getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not SHORTEST <= len(password) <= accounts.LONGEST_PASSWORD:
        raise Mistake(f"A password must have {SHORTEST} to {accounts.LONGEST_PASSWORD} characters.", MISUSED)
    accounts.add(users, name, password, read_only=read_only)
    print(f"{name} may log in.")

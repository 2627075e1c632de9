"""`moldau console`: run the web console until it is told to stop."""

from __future__ import annotations

import getpass
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from moldau.admin.mistakes import MISUSED, Mistake
from moldau.cli.commands import REGISTRY, Bootstrap, Given, Profile, epilog
from moldau.cli.services import Overrides, StopWithStdin, run_service

EPILOG = epilog(
    (
        "moldau console",
        "moldau console -b kafka.example:9092 --schema-registry http://registry.example:8081 --read-only",
        "moldau console --users users.properties --add-user ada",
        "moldau console --users users.properties --listen 0.0.0.0:9021",
    )
)
LISTEN = "127.0.0.1:9021"
HOST = LISTEN.partition(":")[0]
NAME = re.compile(r"[\w.@-]{1,100}")
SHORTEST = 8


def cli(
    bootstrap_servers: Bootstrap = None,
    registry: Annotated[
        str | None,
        typer.Option(
            "--schema-registry",
            "--registry",
            "-r",
            metavar="URL",
            help="The registry. (environment: SCHEMA_REGISTRY_URL; else http://127.0.0.1:8081)",
            rich_help_panel=REGISTRY,
        ),
    ] = None,
    profile: Profile = None,
    client_settings: Given = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port on this machine: 9021.")] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help=f"Where to listen: {LISTEN}."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything, change nothing.")] = False,
    users: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may log in; without it there is no login.")
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Ask for a password, write the user to --users, and end.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name that browsers know it by; repeatable."),
    ] = None,
    overrides: Overrides = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run the web console of a cluster: Moldau's or any Kafka's.

    When it serves it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings --scope http` lists
    what --set knows: HTTPS, say. It listens for this machine alone; to let others in, give it --users or --read-only.
    `--add-user NAME --read-only` makes a user who may only look.
    """
    from moldau.cli.session import opened
    from moldau.console.process import Options, serve

    try:
        if add_user is not None:
            _add(add_user, users, read_only)
            return
        session = opened(bootstrap_servers, registry, profile, client_settings or ())
    except Mistake as error:
        print(f"moldau console: {error}", file=sys.stderr)
        raise typer.Exit(error.code) from None
    where = listen or (LISTEN if port is None else f"{HOST}:{port}")
    options = Options(where, read_only, users, tuple(allow_host or ()), tuple(overrides or ()))
    run_service("console", lambda: serve(session.connection, options, stop_with_stdin=stop_with_stdin))


def _add(name: str, users: Path | None, read_only: bool) -> None:
    from moldau.console import accounts

    if users is None:
        raise Mistake("--add-user needs --users FILE, where to write the user.", MISUSED)
    if not NAME.fullmatch(name):
        raise Mistake(f"{name!r} is no name for a user: letters, digits and . _ @ - make one.", MISUSED)
    password = getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not SHORTEST <= len(password) <= accounts.LONGEST_PASSWORD:
        raise Mistake(f"A password has {SHORTEST} to {accounts.LONGEST_PASSWORD} characters.", MISUSED)
    accounts.add(users, name, password, read_only=read_only)
    print(f"{name} may log in.")

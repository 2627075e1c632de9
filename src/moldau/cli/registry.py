"""`moldau registry`: run a Schema Registry until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from moldau.cli.services import BootstrapServers, Overrides, StopWithStdin, run_service


def cli(
    bootstrap_servers: BootstrapServers = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen: 127.0.0.1:8081. Port 0 takes any.")
    ] = None,
    overrides: Overrides = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a Schema Registry.

    When it serves it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings --scope registry`
    and `--scope http` list what --set knows.
    """
    from moldau.registry.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen}
    run_service("registry", lambda: serve(tuple(overrides or ()), **given, stop_with_stdin=stop_with_stdin))

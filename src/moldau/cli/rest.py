"""`moldau rest`: run a REST Proxy until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from moldau.cli.services import BootstrapServers, Overrides, StopWithStdin, run_service


def cli(
    bootstrap_servers: BootstrapServers = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen: 127.0.0.1:8082. Port 0 takes any.")
    ] = None,
    schema_registry_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The Schema Registry, for Avro, JSON Schema and Protobuf.")
    ] = None,
    overrides: Overrides = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a REST Proxy, versions 2 and 3.

    When it serves it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings --scope rest` and
    `--scope http` list what --set knows.
    """
    from moldau.rest.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen, "schema_registry_url": schema_registry_url}
    run_service("rest", lambda: serve(tuple(overrides or ()), **given, stop_with_stdin=stop_with_stdin))

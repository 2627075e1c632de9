"""`moldau rest`: run a REST Proxy until it is told to stop."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def cli(
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="The brokers, of Moldau or any Kafka.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen: 127.0.0.1:8082. Port 0 takes any.")
    ] = None,
    schema_registry_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The Schema Registry, for Avro, JSON Schema and Protobuf.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable.")
    ] = None,
    stop_with_stdin: Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)] = False,
) -> None:
    """Run a REST Proxy, versions 2 and 3.

    When it serves it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings --scope rest` and
    `--scope http` list what --set knows.
    """
    from moldau.cli.services import run_service
    from moldau.rest.process import serve

    code = run_service(
        "rest",
        lambda: serve(
            tuple(overrides or ()),
            bootstrap_servers=bootstrap_servers,
            listen=listen,
            schema_registry_url=schema_registry_url,
            stop_with_stdin=stop_with_stdin,
        ),
    )
    sys.stdout.flush()
    raise typer.Exit(code)

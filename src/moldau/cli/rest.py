"""`moldau rest`: runs a REST Proxy until it is stopped."""

from __future__ import annotations

from moldau.cli.options import option
from moldau.cli.services import (
    BootstrapServers,
    Config,
    Overrides,
    StartWithStdin,
    StopWithStdin,
    run_service,
    settings_of,
)


def cli(
    bootstrap_servers: BootstrapServers = None,
    listen: str | None = option(
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:8082)", metavar="HOST:PORT"
    ),
    schema_registry_url: str | None = option(
        "--schema-registry-url", "URL of the Schema Registry, for Avro, JSON Schema and Protobuf.", metavar="URL"
    ),
    config: Config = None,
    overrides: Overrides = None,
    start_with_stdin: StartWithStdin = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a REST Proxy, versions 2 and 3.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope rest` and `--scope http` list the settings for --set.
    """
    from moldau.rest.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen, "schema_registry_url": schema_registry_url}
    run_service(
        "rest",
        lambda: serve(
            settings_of(config, overrides), **given, start_with_stdin=start_with_stdin, stop_with_stdin=stop_with_stdin
        ),
    )

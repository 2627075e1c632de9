"""`moldau rest`: runs a REST Proxy until it is stopped."""

from __future__ import annotations

from moldau.cli.options import option
from moldau.cli.services import BootstrapServers, Overrides, StopWithStdin, run_service


def cli(
    bootstrap_servers: BootstrapServers = None,
    listen: str | None = option(
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:8082)", metavar="HOST:PORT"
    ),
    schema_registry_url: str | None = option(
        "--schema-registry-url", "URL of the Schema Registry, for Avro, JSON Schema and Protobuf.", metavar="URL"
    ),
    overrides: Overrides = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a REST Proxy, versions 2 and 3.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope rest` and `--scope http` list the settings for --set.
    """
    from moldau.rest.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen, "schema_registry_url": schema_registry_url}
    run_service("rest", lambda: serve(tuple(overrides or ()), **given, stop_with_stdin=stop_with_stdin))

"""`moldau registry`: runs a Schema Registry until it is stopped."""

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
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:8081)", metavar="HOST:PORT"
    ),
    config: Config = None,
    overrides: Overrides = None,
    start_with_stdin: StartWithStdin = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a Schema Registry.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope registry` and `--scope http` list the settings for --set.
    """
    from moldau.registry.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen}
    run_service(
        "registry",
        lambda: serve(
            settings_of(config, overrides), **given, start_with_stdin=start_with_stdin, stop_with_stdin=stop_with_stdin
        ),
    )

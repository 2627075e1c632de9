"""A proxy as a process: settings, and the application that is served."""

from __future__ import annotations

from moldau.http import parse_listen, run
from moldau.rest.app import application
from moldau.rest.kafka import PREFIXES
from moldau.settings import HTTP, REST, ServiceSettings, SettingError


def serve(
    overrides: tuple[str, ...] = (),
    *,
    bootstrap_servers: str | None = None,
    listen: str | None = None,
    schema_registry_url: str | None = None,
    start_with_stdin: bool = False,
    stop_with_stdin: bool = False,
) -> None:
    """Run a proxy until it is told to stop. SettingError or ServeError where it cannot be."""
    options = {"bootstrap.servers": bootstrap_servers, "listeners": listen, "schema.registry.url": schema_registry_url}
    given = (*overrides, *(f"{name}={text}" for name, text in options.items() if text))
    settings = ServiceSettings([HTTP, REST], given, PREFIXES)
    if not settings["bootstrap.servers"]:
        raise SettingError("bootstrap.servers", None, "name a broker with --bootstrap-servers HOST:PORT")
    place = parse_listen(settings["listeners"], settings)
    run(
        place,
        settings,
        lambda _: application(settings),
        start_with_stdin=start_with_stdin,
        stop_with_stdin=stop_with_stdin,
    )

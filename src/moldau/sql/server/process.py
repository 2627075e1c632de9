"""A SQL server as a process: settings, and a start that may wait for the first use. running.py is what starts then."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from moldau.http import Listen, parse_listen, run
from moldau.settings import HTTP, SQL, ServiceSettings, SettingError
from moldau.sql.errors import SqlError
from moldau.sql.server.command_topic import topic_name
from moldau.topicstore import await_topic

log = logging.getLogger(__name__)
PREFIXES = ("ksql.", "client.")


def serve(
    overrides: tuple[str, ...] = (),
    *,
    bootstrap_servers: str | None = None,
    listen: str | None = None,
    schema_registry_url: str | None = None,
    queries_file: str | None = None,
    start_with_use: bool = False,
    stop_with_stdin: bool = False,
) -> None:
    """Run a server until it is told to stop. SettingError or ServeError where it cannot be.

    With `start_with_use` it starts when somebody connects, or when the service has statements, whose queries must run.
    """
    options = {
        "bootstrap.servers": bootstrap_servers,
        "listeners": listen,
        "ksql.schema.registry.url": schema_registry_url,
        "ksql.queries.file": queries_file,
    }
    given = (*overrides, *(f"{name}={text}" for name, text in options.items() if text))
    settings = ServiceSettings([HTTP, SQL], given, PREFIXES)
    if not settings["bootstrap.servers"]:
        raise SettingError("bootstrap.servers", None, "name a broker with --bootstrap-servers HOST:PORT")
    load_functions(settings)
    place = parse_listen(settings["listeners"], settings)
    client = {"bootstrap.servers": settings["bootstrap.servers"], **settings.under("client.")}
    topic = topic_name(settings["ksql.service.id"])
    waits = start_with_use and not settings["ksql.queries.file"]  # the queries of a file must run
    run(
        place,
        settings,
        partial(application, settings, client),
        await_use=partial(await_topic, client, topic) if waits else None,
        stop_with_stdin=stop_with_stdin,
        http2=True,
    )


def application(settings: ServiceSettings, client: dict[str, str], at: Listen) -> AbstractContextManager[ASGIApp]:
    """Load the server only when it is needed: its code is large."""
    from moldau.sql.server import running

    return running.application(settings, client, at)


def load_functions(settings: ServiceSettings) -> None:
    """Load the functions in Python, before any statement that may call them is read."""
    folder = settings["ksql.extension.dir"]
    if folder:
        from moldau.sql.functions.python_functions import load_folder

        try:
            log.info("functions of %s: %s", folder, ", ".join(load_folder(Path(folder), settings["ksql.udfs.enabled"])))
        except SqlError as error:
            raise SettingError("ksql.extension.dir", folder, str(error)) from None

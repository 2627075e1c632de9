"""A distributed worker as a process: settings, and a start that may wait for the first use. process.py starts then."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial

from starlette.types import ASGIApp

from moldau.connect import clients
from moldau.extras import NotInstalled, require_spark
from moldau.http import Listen, ServeError, parse_listen, run
from moldau.settings import CONNECT, HTTP, ServiceSettings, SettingError, rows
from moldau.topicstore import await_topic

log = logging.getLogger(__name__)
OF_LISTENER = "listeners.https."  # settings of the REST interface's own TLS
REQUEST = "rest.request.timeout.ms"


def serve(
    properties: Mapping[str, str],
    *,
    bootstrap_servers: str | None = None,
    listen: str | None = None,
    start_with_use: bool = False,
    stop_with_stdin: bool = False,
) -> None:
    """Run a worker until it is told to stop. SettingError or ServeError where it cannot be.

    With `start_with_use` it starts when somebody connects, or when its group has connectors, which must run.
    """
    given = {**properties, **({"bootstrap.servers": bootstrap_servers} if bootstrap_servers else {})}
    if not given.get("bootstrap.servers"):
        raise SettingError("bootstrap.servers", None, "name a broker with --bootstrap-servers HOST:PORT")
    settings = service_settings(given)
    if is_cluster(settings["spark.master"]):
        try:
            require_spark()
        except NotInstalled as error:
            raise ServeError(str(error)) from None
    place = parse_listen(first_of(listen or settings["listeners"]), settings)
    has_failed = threading.Event()
    run(
        place,
        settings,
        partial(application, settings, given, has_failed),
        await_use=partial(await_topic, clients.basic(given), settings["config.storage.topic"])
        if start_with_use
        else None,
        stop_with_stdin=stop_with_stdin,
    )
    if has_failed.is_set():
        raise ServeError("The worker cannot go on; its log says why.")


def application(
    settings: ServiceSettings, given: Mapping[str, str], has_failed: threading.Event, at: Listen
) -> AbstractContextManager[ASGIApp]:
    """Load the worker only when it is needed: its code is large."""
    from moldau.connect import process

    def end() -> None:
        """End this process as a signal would: a worker that cannot work must not seem to be there."""
        has_failed.set()
        os.kill(os.getpid(), signal.SIGTERM)

    master = settings["spark.master"]
    if not is_cluster(master):
        if master:
            log.info("with %s=%s this process runs connectors itself", "spark.master", master)
        return process.worker(settings, given, at, end)
    from moldau.connect.spark.driver import on_cluster

    return process.worker(settings, given, at, end, partial(on_cluster, settings, given, at, end))


def is_cluster(master: str) -> bool:
    """Tell whether a master of Spark has other machines."""
    return bool(master) and not master.startswith("local")


def service_settings(given: Mapping[str, str]) -> ServiceSettings:
    """Return the settings of worker and REST. Names that neither has are for Kafka's clients, converters or Java."""
    own = {name: text for name, text in given.items() if name in rows(CONNECT)}
    of_http = {name: text for name, text in clients.under(OF_LISTENER, given).items() if name in rows(HTTP)}
    own_names = ("authentication.", "moldau.audit.")
    of_http |= {name: text for name, text in given.items() if name.startswith(own_names)}
    timeout = given.get(REQUEST, rows(CONNECT)[REQUEST].default or "")
    return ServiceSettings([HTTP, CONNECT], {"request.timeout.ms": timeout, **of_http, **own})


def first_of(listeners: str) -> str:
    named = [one.strip() for one in listeners.split(",") if one.strip()]
    if len(named) != 1:
        raise SettingError("listeners", listeners, "name one listener")
    return named[0]

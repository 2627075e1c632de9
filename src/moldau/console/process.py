"""The console as a process: options, guard, pages and HTTP put together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from moldau.admin.connection import Connection
from moldau.console import accounts
from moldau.console.guard import LOOPBACK, Guard
from moldau.console.page_context import Console
from moldau.extras import NotInstalled, require
from moldau.http import Listen, ServeError, parse_listen, run
from moldau.settings import HTTP, ServiceSettings, SettingError

LISTEN = "127.0.0.1:9021"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `moldau console`."""

    listen: str = LISTEN
    read_only: bool = False
    users: Path | None = None
    hosts: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()


def serve(connection: Connection, options: Options, *, stop_with_stdin: bool = False) -> None:
    """Run a console until it is told to stop; SettingError or ServeError if it cannot run."""
    settings = ServiceSettings([HTTP], options.overrides)
    if settings["authentication.method"] != "NONE":
        raise SettingError("authentication.method", settings["authentication.method"], "the console has --users FILE")
    place = parse_listen(options.listen, settings)
    users = accounts.read(options.users) if options.users else None
    sessions = None if users is None else accounts.Sessions(users)
    if sessions is None and place.host not in LOOPBACK and not options.read_only:
        words = "other machines could change everything: give --users FILE, or --read-only"
        raise SettingError("listen", options.listen, words)
    build = partial(application, connection, options, sessions)
    run(place, settings, build, stop_with_stdin=stop_with_stdin, lifespan=True)


@contextlib.contextmanager
def application(
    connection: Connection, options: Options, sessions: accounts.Sessions | None, listen: Listen
) -> Iterator[ASGIApp]:
    """Run the console for the length of a `with`."""
    try:
        require("console", "The console", "nicegui")
    except NotInstalled as error:
        raise ServeError(str(error)) from None
    from moldau.console import site

    console = Console(connection, read_only=options.read_only, sessions=sessions)
    console.sampler.start()
    try:
        yield Guard(site.application(console), sessions, hosts(listen, options.hosts))
    finally:
        console.close()


def hosts(listen: Listen, more: tuple[str, ...]) -> frozenset[str] | None:
    """Return the host names that this console answers to; None for any, if it listens everywhere and none are given."""
    if listen.host in ("0.0.0.0", "::") and not more:
        return None
    return frozenset((*LOOPBACK, listen.host.lower(), *(name.lower() for name in more)))

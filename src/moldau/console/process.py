"""The console as a process: options, guard, pages and HTTP put together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from moldau.admin.connection import Connection
from moldau.admin.connectors import NOBODY, URL, Login
from moldau.console import accounts
from moldau.console.guard import LOOPBACK, Guard
from moldau.console.page_context import Console
from moldau.extras import NotInstalled, require
from moldau.http import Listen, ServeError, parse_listen, run
from moldau.http.users import Reread
from moldau.settings import HTTP, ServiceSettings, SettingError
from moldau.sql.shell.remote import DEFAULT_URL

LISTEN = "127.0.0.1:9021"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `moldau console`. `secured` is the folder of `moldau secure init` with its settings, if any."""

    listen: str = LISTEN
    read_only: bool = False
    users: Path | None = None
    hosts: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    connect: str = URL
    connect_login: Login = NOBODY
    sql: str = DEFAULT_URL
    secured: Path | None = None


def serve(connection: Connection, options: Options, *, stop_with_stdin: bool = False) -> None:
    """Run a console until it is told to stop; SettingError or ServeError if it cannot run."""
    settings = ServiceSettings([HTTP], options.overrides)
    methods = [one.upper() for one in settings["authentication.method"]]
    if methods not in (["NONE"], ["BASIC"]) or (methods == ["BASIC"] and options.users is None):
        raise SettingError("authentication.method", ",".join(methods), "the console has --users FILE")
    if settings["moldau.act.as.caller"] and options.users is None:
        raise SettingError("moldau.act.as.caller", "true", "nobody logs in: give --users FILE")
    place = parse_listen(options.listen, settings)
    users = Reread(str(options.users), lambda path: accounts.read(Path(path))) if options.users else None
    sessions = None if users is None else accounts.Sessions(users)
    if sessions is None and place.host not in LOOPBACK and not options.read_only:
        words = "other machines could change everything: give --users FILE, or --read-only"
        raise SettingError("listen", options.listen, words)
    build = partial(application, connection, options, sessions, settings)
    run(place, settings, build, stop_with_stdin=stop_with_stdin, lifespan=True)


@contextlib.contextmanager
def application(
    connection: Connection,
    options: Options,
    sessions: accounts.Sessions | None,
    settings: ServiceSettings,
    listen: Listen,
) -> Iterator[ASGIApp]:
    """Run the console for the length of a `with`."""
    try:
        require("console", "The console", "nicegui")
    except NotInstalled as error:
        raise ServeError(str(error)) from None
    from moldau.console import api, site

    acts = settings["moldau.act.as.caller"]
    console = Console(
        connection,
        read_only=options.read_only,
        sessions=sessions,
        connect_url=options.connect,
        connect_login=options.connect_login,
        act_as_user=(settings["moldau.act.as.caller.mechanism"], settings["moldau.act.as.caller.max"])
        if acts
        else None,
        sql_url=options.sql,
        secured=options.secured,
    )
    console.sampler.start()
    try:
        pages = api.beside(site.application(console), console, settings)
        yield Guard(pages, sessions, hosts(listen, options.hosts), console.client_of)
    finally:
        console.close()


def hosts(listen: Listen, more: tuple[str, ...]) -> frozenset[str] | None:
    """Return the host names that this console answers to; None for any, if it listens everywhere and none are given."""
    if listen.host in ("0.0.0.0", "::") and not more:
        return None
    return frozenset((*LOOPBACK, listen.host.lower(), *(name.lower() for name in more)))

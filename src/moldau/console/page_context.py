"""What a page works with: the cluster, the registry, threads, and the rights of its user.

A page never waits for the network itself: `ask` does so in a thread. Whatever changes something goes through `act`,
which checks in the server, at that moment, that this user may: hiding a button is not enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from moldau.admin import connectors
from moldau.admin.acting import Acting
from moldau.admin.connection import Connection
from moldau.client import Client
from moldau.console.accounts import Account, Sessions
from moldau.console.balancing import Balancing
from moldau.console.model.problems import Problem, Refused, problem
from moldau.console.sampler import Sampler
from moldau.console.timeline import Timeline
from moldau.records.formats import connect_registry
from moldau.serdes.registry import Registry
from moldau.sql.shell.remote import DEFAULT_URL

T = TypeVar("T")
THREADS = 16
READ_ONLY = "This console is read-only: it was started with --read-only, or your user may only look."
LOGGED_OUT = "Your session has ended. Load the page again and log in."


class Console:
    """What all pages share, for as long as the console runs."""

    def __init__(
        self,
        connection: Connection,
        *,
        read_only: bool = False,
        sessions: Sessions | None = None,
        connect_url: str = connectors.URL,
        connect_login: connectors.Login = connectors.NOBODY,
        act_as_user: tuple[str, int] | None = None,
        sql_url: str = DEFAULT_URL,
        secured: Path | None = None,
    ) -> None:
        self.connection, self.read_only, self.sessions = connection, read_only, sessions
        self.secured = secured
        self.connect_url, self.connect_login, self.sql_url = connect_url, connect_login, sql_url
        self.client = connection.client
        self.sampler = Sampler(self.client)
        self.timeline = Timeline(self.client)
        self.balancing = Balancing(connection)
        self.threads = ThreadPoolExecutor(THREADS, "console")
        self.acting: Acting[Client] | None = None
        if act_as_user is not None:
            mechanism, most = act_as_user
            self.acting = Acting(self.client, mechanism, lambda login: self.client.sibling(**login), Client.close, most)

    def client_of(self, account: Account | None) -> Client:
        """Return the client that acts as a user, who has one since the login; ClientError if it cannot be made."""
        return self.client if self.acting is None or account is None else self.acting.of(account.name)

    @cached_property
    def registry(self) -> Registry:
        """Return the client of the registry; RegistryError if it does not answer."""
        return connect_registry(self.connection)

    def close(self) -> None:
        if self.acting is not None:
            self.acting.close()
        self.sampler.close()
        self.balancing.close()
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Desk:
    """A user at a page; `path` and `query` are parts of its address."""

    console: Console
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    token: str | None = None
    dark: bool | None = None

    @property
    def client(self) -> Client:
        return self.console.client_of(self.account)

    @property
    def may_act(self) -> bool:
        """Say whether to offer what changes something."""
        return not (self.console.read_only or (self.account is not None and self.account.read_only))

    async def ask(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that waits for the network, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.console.threads, lambda: function(*arguments))

    async def act(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that changes something, if this user may; Refused otherwise."""
        if self.console.sessions is not None and self.console.sessions.find(self.token) is None:
            raise Refused(LOGGED_OUT)
        if not self.may_act:
            raise Refused(READ_ONLY)
        return await self.ask(function, *arguments)

    def problem(self, error: Exception) -> Problem:
        """Return an expected error as a sentence."""
        return problem(error, self.console.connection.bootstrap_servers, self.console.connection.registry_url)

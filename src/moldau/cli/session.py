"""A command's way to cluster and registry: options, environment and profile become settings and a client.

An option wins over the environment, that over the profile, and that over the usual ports of this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.admin.connection import BOOTSTRAP, REGISTRY, REGISTRY_PREFIX, Connection
from moldau.admin.mistakes import misused
from moldau.cli import profiles
from moldau.cli.output import Columns, Output, write
from moldau.client import Client
from moldau.settings import SettingError, assignment

NO_PROFILE = "-"


@dataclass(slots=True)
class Session:
    """What a command was told about where to connect, and how to answer."""

    connection: Connection = field(default_factory=Connection)
    output: Output = Output.table
    profile: str | None = None

    @property
    def client(self) -> Client:
        """The client of the command, made when it is first needed."""
        return self.connection.client

    def show(self, result: Any, columns: Columns = (), empty: str = "") -> None:
        """Write rows or an object; `empty` is what a person is told where there are no rows."""
        if not result and empty and self.output is Output.table:
            self.tell(empty)
        else:
            write(self.output, result, columns)

    def done(self, sentence: str, **facts: Any) -> None:
        """A change was made: a sentence for people, the facts for programs."""
        if self.output is Output.table:
            print(sentence)
        else:
            write(self.output, facts)

    def tell(self, sentence: str) -> None:
        """A remark for people, which is no part of the result."""
        print(sentence, file=sys.stderr)

    def confirm(self, question: str, sure: bool) -> None:
        """Ask on a terminal before something is lost; a script is believed."""
        if sure or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self.tell(f"{question} [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise misused("Nothing was changed.")


def opened(
    bootstrap_servers: str | None = None,
    registry: str | None = None,
    profile: str | None = None,
    given: Iterable[str] = (),
    output: Output = Output.table,
    environment: Mapping[str, str] | None = None,
) -> Session:
    """A session from what options, environment and profile say; NO_PROFILE does not even look for one."""
    env = os.environ if environment is None else environment
    name, chosen = _profile(env.get("MOLDAU_PROFILE") if profile is None else profile)
    settings = {**chosen.settings, **pairs(given, "-X")}
    named = settings.pop("bootstrap.servers", None)
    url = settings.pop(f"{REGISTRY_PREFIX}url", None)
    connection = Connection(
        bootstrap_servers or named or env.get("MOLDAU_BOOTSTRAP_SERVERS") or chosen.bootstrap_servers or BOOTSTRAP,
        registry or url or env.get("SCHEMA_REGISTRY_URL") or chosen.registry or REGISTRY,
        settings,
    )
    return Session(connection, output, name)


def _profile(name: str | None) -> tuple[str | None, profiles.Profile]:
    if name == NO_PROFILE:
        return None, profiles.Profile()
    known = profiles.load()
    wanted = name or known.current
    return (wanted, known.find(wanted)) if wanted else (None, profiles.Profile())


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """Options of the form NAME=VALUE."""
    found: dict[str, str] = {}
    for text in given:
        try:
            name, written = assignment(text)
        except SettingError:
            raise misused(f"{option} {text!r} is not NAME=VALUE.") from None
        found[name] = written
    return found

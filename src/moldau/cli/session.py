"""The connection of a command to cluster and registry, made from options, environment and profile.

An option overrides the environment, the environment overrides the profile, and the profile the default ports.
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
    """Where a command connects to, and how it writes its result."""

    connection: Connection = field(default_factory=Connection)
    output: Output = "table"
    profile: str | None = None
    registry_user: str | None = None

    @property
    def client(self) -> Client:
        """Return the client of the command, made when it is first needed."""
        return self.connection.client

    @property
    def for_people(self) -> bool:
        """Return whether people read the result, not programs."""
        return self.output == "table"

    def show(self, result: Any, columns: Columns = (), empty: str = "") -> None:
        """Write rows or an object; `empty` is what people read if there are no rows."""
        if not result and empty and self.for_people:
            self.tell(empty)
        else:
            write(self.output, result, columns)

    def done(self, sentence: str, **facts: Any) -> None:
        """Report a change: a sentence for people, the facts for programs."""
        if self.for_people:
            print(sentence)
        else:
            write(self.output, facts)

    def tell(self, sentence: str) -> None:
        """Print a remark for people, which is not part of the result."""
        print(sentence, file=sys.stderr)

    def confirm(self, question: str, sure: bool) -> None:
        """Ask on a terminal before something is lost; a script is not asked."""
        if sure or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self.tell(f"{question} [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise misused("Nothing was changed.")


def open_session(
    bootstrap_servers: str | None = None,
    registry: str | None = None,
    profile: str | None = None,
    client_settings: Iterable[str] | None = (),
    output: Output = "table",
    registry_user: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Session:
    """Open a session by options, environment and profile; NO_PROFILE does not even look for one."""
    env = os.environ if environment is None else environment
    name, chosen = _profile(env.get("MOLDAU_PROFILE") if profile is None else profile)
    settings = {**chosen.settings, **pairs(client_settings or (), "-X")}
    named = settings.pop("bootstrap.servers", None)
    url = settings.pop(f"{REGISTRY_PREFIX}url", None)
    connection = Connection(
        bootstrap_servers or named or env.get("MOLDAU_BOOTSTRAP_SERVERS") or chosen.bootstrap_servers or BOOTSTRAP,
        registry or url or env.get("SCHEMA_REGISTRY_URL") or chosen.registry or REGISTRY,
        settings,
    )
    return Session(connection, output, name, registry_user)


def _profile(name: str | None) -> tuple[str | None, profiles.Profile]:
    if name == NO_PROFILE:
        return None, profiles.Profile()
    known = profiles.load()
    wanted = name or known.current
    return (wanted, known.find(wanted)) if wanted else (None, profiles.Profile())


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """Parse options of the form NAME=VALUE."""
    parsed: dict[str, str] = {}
    for text in given:
        try:
            name, written = assignment(text)
        except SettingError:
            raise misused(f"{option} {text!r} is not NAME=VALUE.") from None
        parsed[name] = written
    return parsed

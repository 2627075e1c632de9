"""Profiles: names for clusters and registries, and how to connect to them. A TOML file that only the user can read.

current = "staging"

[profiles.staging]
bootstrap-servers = "kafka.example:9092"
registry = "https://registry.example"

[profiles.staging.settings]
"security.protocol" = "sasl_ssl"
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.admin.mistakes import Mistake

LARGEST = 1 << 20
SECRET = re.compile(r"password|secret|\.key\.pem|basic\.auth\.user\.info", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Profile:
    """A cluster. `settings` are those of clients; names with `schema.registry.` in front are for the registry."""

    bootstrap_servers: str | None = None
    registry: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def public(self) -> dict[str, Any]:
        """Return the profile with its secrets hidden."""
        settings = {name: "***" if SECRET.search(name) else value for name, value in self.settings.items()}
        return {"bootstrap_servers": self.bootstrap_servers, "registry": self.registry, "settings": settings}


@dataclass(frozen=True, slots=True)
class Profiles:
    """The content of the file."""

    current: str | None = None
    named: Mapping[str, Profile] = field(default_factory=dict)

    def find(self, name: str) -> Profile:
        if name not in self.named:
            have = f"The profiles are: {', '.join(sorted(self.named))}." if self.named else "There are no profiles yet."
            raise Mistake(f"There is no profile {name!r}. {have} `moldau profile set {name} ...` creates it.")
        return self.named[name]


def path() -> Path:
    """Return the path of the file, in the user's configuration directory."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(os.environ.get("MOLDAU_PROFILES") or os.path.join(home, "moldau", "profiles.toml"))


def load() -> Profiles:
    """Read the file; without one there are no profiles."""
    file = path()
    try:
        if file.stat().st_size > LARGEST:
            raise Mistake(f"{file} is larger than {LARGEST} bytes: it is not a file of profiles.")
        return parse(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    except OSError as error:
        raise Mistake(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise Mistake(f"{file} is not a file of profiles: {error}. Correct it, or remove it and start again.") from None


def parse(text: str) -> Profiles:
    document = tomllib.loads(text)
    named = {name: _profile(name, table) for name, table in _table(document, "profiles").items()}
    current = document.get("current")
    return Profiles(str(current) if current else None, named)


def _profile(name: str, table: Any) -> Profile:
    unknown = set(table) - {"bootstrap-servers", "registry", "settings"}
    if unknown:
        raise TypeError(f"the profile {name} has {', '.join(sorted(unknown))}, which are unknown")
    settings = {key: _text(value) for key, value in _table(table, "settings").items()}
    return Profile(table.get("bootstrap-servers"), table.get("registry"), settings)


def _table(table: Any, name: str) -> Mapping[str, Any]:
    inner = table.get(name, {}) if isinstance(table, dict) else None
    if not isinstance(inner, dict):
        raise TypeError(f"{name} is not a table")
    return inner


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def save(profiles: Profiles) -> Path:
    """Write the file atomically, readable by the user alone: it may hold passwords."""
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".profiles-")  # has mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text_of(profiles))
        os.replace(temporary, file)
    except OSError as error:
        raise Mistake(f"{file} cannot be written: {error.strerror}.") from None
    return file


def text_of(profiles: Profiles) -> str:
    """Return the text of the file; `parse` reads it back."""
    return "".join(f"{line}\n" for line in _lines(profiles))


def _lines(profiles: Profiles) -> Iterator[str]:
    yield "# Clusters that `moldau --profile NAME` talks to. `moldau profile` changes this file."
    if profiles.current:
        yield f"current = {_quoted(profiles.current)}"
    for name, profile in profiles.named.items():
        yield f"\n[profiles.{_quoted(name)}]"
        if profile.bootstrap_servers:
            yield f"bootstrap-servers = {_quoted(profile.bootstrap_servers)}"
        if profile.registry:
            yield f"registry = {_quoted(profile.registry)}"
        if profile.settings:
            yield f"\n[profiles.{_quoted(name)}.settings]"
            yield from (f"{_quoted(key)} = {_quoted(value)}" for key, value in profile.settings.items())


def _quoted(text: str) -> str:
    """Quote a text for TOML, as JSON does, but escape DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")

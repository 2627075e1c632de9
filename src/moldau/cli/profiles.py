"""Profiles: which cluster and registry commands talk to, and how, by a name. A TOML file of the user's alone.

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
    """One cluster. `settings` are those of clients, and of the registry's with `schema.registry.` in front."""

    bootstrap_servers: str | None = None
    registry: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Without what nobody should read over a shoulder."""
        hidden = {name: "***" if SECRET.search(name) else value for name, value in self.settings.items()}
        return {"bootstrap_servers": self.bootstrap_servers, "registry": self.registry, "settings": hidden}


@dataclass(frozen=True, slots=True)
class Profiles:
    """The file."""

    current: str | None = None
    named: Mapping[str, Profile] = field(default_factory=dict)

    def find(self, name: str) -> Profile:
        if name not in self.named:
            have = f"There are: {', '.join(sorted(self.named))}." if self.named else "There are none yet."
            raise Mistake(f"There is no profile {name!r}. {have} `moldau profile set {name} ...` makes it.")
        return self.named[name]


def path() -> Path:
    """The file, under the user's directory of settings."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(os.environ.get("MOLDAU_PROFILES") or os.path.join(home, "moldau", "profiles.toml"))


def load() -> Profiles:
    """What the file says; nothing if there is none."""
    file = path()
    try:
        if file.stat().st_size > LARGEST:
            raise Mistake(f"{file} is larger than {LARGEST} bytes: it is no file of profiles.")
        return parse(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    except OSError as error:
        raise Mistake(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise Mistake(f"{file} is no file of profiles: {error}. Mend it, or remove it and begin anew.") from None


def parse(text: str) -> Profiles:
    document = tomllib.loads(text)
    named = {name: _profile(name, table) for name, table in _table(document, "profiles").items()}
    current = document.get("current")
    return Profiles(str(current) if current else None, named)


def _profile(name: str, table: Any) -> Profile:
    unknown = set(table) - {"bootstrap-servers", "registry", "settings"}
    if unknown:
        raise TypeError(f"the profile {name} has {', '.join(sorted(unknown))}, which means nothing")
    settings = {key: _text(value) for key, value in _table(table, "settings").items()}
    return Profile(table.get("bootstrap-servers"), table.get("registry"), settings)


def _table(table: Any, name: str) -> Mapping[str, Any]:
    found = table.get(name, {}) if isinstance(table, dict) else None
    if not isinstance(found, dict):
        raise TypeError(f"{name} is no table")
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def save(profiles: Profiles) -> Path:
    """Write the file at once or not at all, readable by nobody else: it may hold passwords."""
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=file.parent, prefix=".profiles-")  # has mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text_of(profiles))
        os.replace(made, file)
    except OSError as error:
        raise Mistake(f"{file} cannot be written: {error.strerror}.") from None
    return file


def text_of(profiles: Profiles) -> str:
    """The file's text; `parse` gives the same back."""
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
    """A basic string of TOML: JSON's, but that DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")

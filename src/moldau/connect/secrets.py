"""Secrets in the settings of connectors: `${provider:path:key}`, resolved in the worker alone (KIP-297, KIP-421).

The providers are those that `config.providers` names, of Kafka's three classes: a properties file, a directory with a
file for each key, and the environment. What is stored, and what REST shows, is the reference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from moldau.connect.errors import ConfigError
from moldau.settings import properties

_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*?)\}")
PACKAGE = "org.apache.kafka.common.config.provider."


def of_file(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return properties(file.read())[key]
    except OSError as error:
        raise ConfigError(f"The secret {key} of {path} cannot be read: {error.strerror or error}.") from None
    except KeyError:
        raise ConfigError(f"The file {path} has no {key}.") from None


def of_directory(path: str, key: str) -> str:
    if os.path.basename(key) != key or key in ("", ".", ".."):
        raise ConfigError(f"{key} is not the name of a file in {path}.")
    try:
        with open(os.path.join(path, key), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"The secret {key} of {path} cannot be read: {error.strerror or error}.") from None


def of_environment(path: str, key: str) -> str:
    if key not in os.environ:
        raise ConfigError(f"The environment has no variable {key}.")
    return os.environ[key]


Provider = Callable[[str, str], str]
PROVIDERS: dict[str, Provider] = {
    PACKAGE + "FileConfigProvider": of_file,
    PACKAGE + "DirectoryConfigProvider": of_directory,
    PACKAGE + "EnvVarConfigProvider": of_environment,
}


def providers(worker: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers that a worker's settings name; ConfigError for one that cannot be."""
    found: dict[str, Provider] = {}
    for alias in filter(None, (name.strip() for name in worker.get("config.providers", "").split(","))):
        class_name = worker.get(f"config.providers.{alias}.class", "")
        if class_name not in PROVIDERS:
            known = ", ".join(name.removeprefix(PACKAGE) for name in PROVIDERS)
            raise ConfigError(f"config.providers.{alias}.class is {class_name!r}; the classes here are {known}.")
        found[alias] = PROVIDERS[class_name]
    return found


def resolve(config: Mapping[str, str | None], known: Mapping[str, Provider]) -> dict[str, str]:
    """Return a config with its references replaced, and without settings that are null."""

    def value(match: re.Match[str]) -> str:
        provider = known.get(match[1])
        return match[0] if provider is None else provider(match[2] or "", match[3])

    return {name: _REFERENCE.sub(value, text) for name, text in config.items() if text is not None}

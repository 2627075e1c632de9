"""Clients of clusters and schema registries, cached by their settings: a worker of Spark runs many tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.client import Client
from moldau.settings import SettingError
from moldau.spark.client_settings import PREFIX
from moldau.spark.options import OptionError

if TYPE_CHECKING:
    from moldau.serdes.registry import Registry

MOST = 16  # clusters, and registries, that a process talks to at a time
_clients: dict[tuple[int, frozenset[tuple[str, str]]], Client] = {}


def client_for(settings: Mapping[str, str]) -> Client:
    """Return the client of these settings; it stays open for the next caller."""
    key = (os.getpid(), frozenset(settings.items()))  # a connection does not survive a fork
    if key not in _clients:
        if len(_clients) >= MOST:
            _clients.pop(next(iter(_clients))).close()
        try:
            _clients[key] = Client(settings)
        except SettingError as error:
            raise OptionError(f"Among the options that begin with {PREFIX}: {error}") from None
    return _clients[key]


@lru_cache(MOST)
def registry_for(settings: tuple[tuple[str, str], ...]) -> Registry:
    """Return the registry of these settings. Its module is imported only where it is needed."""
    from moldau.serdes.registry import Registry

    return Registry.connect(dict(settings))

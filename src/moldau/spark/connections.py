"""Clients of clusters and schema registries, cached by their settings: a worker of Spark runs many tasks."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.client import Client, ClientError
from moldau.settings import SettingError
from moldau.spark.client_settings import PREFIX
from moldau.spark.options import OptionError

if TYPE_CHECKING:
    from moldau.serdes.registry import Registry

__all__ = ["Client", "ClientError", "client_for", "registry_for"]
MOST = 16  # clusters, and registries, that a process talks to at a time
_lock = threading.Lock()
_clients: dict[tuple[int, frozenset[tuple[str, str]]], Client] = {}


def client_for(settings: Mapping[str, str]) -> Client:
    """Return the client of these settings; it stays open for the next caller.

    One that makes room for another is not closed: who uses it goes on, and its connections end with the last reference.
    """
    key = (os.getpid(), frozenset(settings.items()))  # a connection does not survive a fork
    with _lock:
        client = _clients.pop(key, None) or _opened(settings)
        while len(_clients) >= MOST:
            del _clients[next(iter(_clients))]
        _clients[key] = client  # the last: those that were not used for longest go first
    return client


def _opened(settings: Mapping[str, str]) -> Client:
    try:
        client = Client(settings)
    except SettingError as error:
        raise OptionError(f"Among the options that begin with {PREFIX}: {error}") from None
    weakref.finalize(client, client.brokers.close).atexit = False
    return client


@lru_cache(MOST)
def registry_for(settings: tuple[tuple[str, str], ...]) -> Registry:
    """Return the registry of these settings. Its module is imported only where it is needed."""
    from moldau.serdes.registry import Registry

    return Registry.connect(dict(settings))

"""Clients of a process of Spark, of clusters and of schema registries, one for each set of settings: workers are used
again, and so are their connections.
"""

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
    """The client of these settings; it stays open for whoever asks next."""
    key = (os.getpid(), frozenset(settings.items()))  # what was made before a fork is not ours
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
    """The registry of these settings. What talks to one is imported where there is one."""
    from moldau.serdes.registry import Registry

    return Registry.connect(dict(settings))

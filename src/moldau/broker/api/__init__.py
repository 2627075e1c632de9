"""One file per API key. Each registers the versions it answers, and ApiVersions is built from that."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from moldau.settings import Settings

# handler(node, connection, request, version) -> response, a Wait, or None where no response is due
Handler = Callable[[Any, Any, Any, int], Any]


@dataclass(frozen=True, slots=True)
class Api:
    """What the node needs to answer one key. `advertised` is the lowest version that clients are told of; with a
    `setting` the key is known only where that is true."""

    key: int
    low: int
    high: int
    advertised: int
    handle: Handler
    setting: str | None = None


APIS: dict[int, Api] = {}


def api(
    key: int, versions: tuple[int, int], advertised: int | None = None, setting: str | None = None
) -> Callable[[Handler], Handler]:
    """Register a handler for the versions of one key."""
    low, high = versions

    def register(handler: Handler) -> Handler:
        APIS[key] = Api(key, low, high, low if advertised is None else advertised, handler, setting)
        return handler

    return register


def load() -> dict[int, Api]:
    """Import every API, so that each has registered itself."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return APIS


def known_with(settings: Settings) -> dict[int, Api]:
    """The APIs of a broker with these settings."""
    return {key: one for key, one in load().items() if one.setting is None or settings[one.setting]}

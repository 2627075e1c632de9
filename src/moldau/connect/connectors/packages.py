"""Packages that only some connectors need: they are imported when one is opened, or a sentence says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from moldau.connect.errors import ConfigError


def needed(package: str, what: str, extra: str) -> Any:
    """Import a package; ConfigError with the command that installs it if there is none."""
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ConfigError(f"{what} needs the Python package {name}: pip install 'moldau[{extra}]'.") from None

"""Kafka Connect in Python: records, converters, transforms, and what runs connectors.

`from moldau.connect import ...` has what a connector needs: see `sdk.py` and docs/connect/write-your-own.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.connect.errors import RetriableError
    from moldau.connect.sdk import Offsets, Record, Row, Task, sink, source
    from moldau.connect.sdk_settings import Between, Secret

_FROM = {
    **dict.fromkeys(("Offsets", "Record", "Row", "Task", "sink", "source"), "sdk"),
    **dict.fromkeys(("Between", "Secret"), "sdk_settings"),
    "RetriableError": "errors",
}
__all__ = ["Between", "Offsets", "Record", "RetriableError", "Row", "Secret", "Task", "sink", "source"]


def __getattr__(name: str) -> Any:
    """Import what a connector needs when it asks: most of the package does without."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)

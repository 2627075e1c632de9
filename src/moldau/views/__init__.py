"""Views: stores of applications, kept up in memory from their changelog topics, for look-ups, ranges and SQL.

A view needs a Kafka and nothing else: no Spark, and not the application itself.
"""

from .errors import Stale, ViewError
from .view import KeyValueView, Limits, Position, SessionView, VersionedView, View, WindowView, open_view

__all__ = [
    "KeyValueView",
    "Limits",
    "Position",
    "SessionView",
    "Stale",
    "VersionedView",
    "View",
    "ViewError",
    "WindowView",
    "open_view",
]

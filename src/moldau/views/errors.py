"""What a view cannot do, in a sentence that says what to do."""

from __future__ import annotations

from moldau.topicstore import StoreError


class ViewError(StoreError):
    """A question that cannot be answered, or a view that cannot be kept."""


class Stale(ViewError):
    """A view has not reached in time what was asked of it."""

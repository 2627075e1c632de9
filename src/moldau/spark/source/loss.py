"""Records that are gone before they were read: a query fails by it, or goes on, as it was told."""

from __future__ import annotations

import logging

log = logging.getLogger("moldau.spark")


class DataLoss(RuntimeError):
    """Records that were to be read are not there any more; the text says which, and what to do."""


def lost(sentences: list[str], fail: bool) -> None:
    """Fail, or go on and tell."""
    if not sentences:
        return
    if fail:
        more = f" ({len(sentences) - 1} more such.)" if len(sentences) > 1 else ""
        raise DataLoss(f"{sentences[0]}{more} To go on without it, set failOnDataLoss to false.")
    for sentence in sentences:
        log.warning("%s Going on, as failOnDataLoss is false.", sentence)

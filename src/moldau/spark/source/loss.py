"""Records that are gone before they were read: a query fails or continues, as failOnDataLoss says."""

from __future__ import annotations

import logging

log = logging.getLogger("moldau.spark")


class DataLoss(RuntimeError):
    """Records that should have been read and are gone; the text says which, and what to do."""


def lost(sentences: list[str], fail: bool) -> None:
    """Fail, or log and continue."""
    if not sentences:
        return
    if fail:
        more = f" ({len(sentences) - 1} more such.)" if len(sentences) > 1 else ""
        raise DataLoss(f"{sentences[0]}{more} To go on without it, set failOnDataLoss to false.")
    for sentence in sentences:
        log.warning("%s Going on, as failOnDataLoss is false.", sentence)

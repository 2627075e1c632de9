"""Levels of features: changed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from moldau.admin import TIMEOUT_MS
from moldau.client import CONTROLLER, Client, Error
from moldau.client import messages as m


class Direction(IntEnum):
    """Which way a level may go, and whether what is stored may become unreadable."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update(
    client: Client, levels: Mapping[str, int], direction: Direction, *, validate_only: bool = False
) -> dict[str, tuple[Error, str | None]]:
    """Set levels, all or none; what became of each, in the broker's words."""
    rows = [m.UpdateFeaturesRequest_FeatureUpdateKey(name, level, False, direction) for name, level in levels.items()]
    answer = client.send(m.UpdateFeaturesRequest(TIMEOUT_MS, rows, validate_only), CONTROLLER)
    if answer.error_code:
        whole = (Error(answer.error_code), answer.error_message)
        return dict.fromkeys(levels, whole)
    found = {row.feature: (Error(row.error_code), row.error_message) for row in answer.results}
    return {name: found.get(name, (Error.NONE, None)) for name in levels}

"""Releases of Kafka, their levels of metadata.version, and the levels of other features."""

from __future__ import annotations

METADATA = "metadata.version"
NAMES = """
    3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0
    3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0
"""
RELEASES = {name: level for level, name in enumerate(NAMES.split(), 7)}
LATEST = "4.3-IV0"

# Feature -> the release since which a new cluster has this level.
FEATURES: dict[str, dict[str, int]] = {
    "kraft.version": {"3.9-IV0": 1},
    "transaction.version": {"4.0-IV2": 2},
    "group.version": {"4.0-IV0": 1},
    "eligible.leader.replicas.version": {"4.1-IV0": 1},
    "share.version": {"4.2-IV0": 1},
    "streams.version": {"4.2-IV1": 1},
}
# The level of metadata.version that a level of a feature needs.
DEPENDENCIES = {("eligible.leader.replicas.version", 1): RELEASES["4.0-IV1"]}


def levels_of(release: str) -> dict[str, int]:
    """Return the levels of all features in a new cluster of a release."""
    at = RELEASES[release]
    others = {
        name: max((level for since, level in steps.items() if RELEASES[since] <= at), default=0)
        for name, steps in FEATURES.items()
    }
    return {METADATA: at, **others}


def highest(feature: str) -> int:
    return max(FEATURES[feature].values())


def level_text(feature: str, level: int) -> str:
    """Write a level: of metadata.version as its release, of other features as a number."""
    if feature != METADATA:
        return str(level)
    return next((release for release, number in RELEASES.items() if number == level), f"UNKNOWN [{level}]")

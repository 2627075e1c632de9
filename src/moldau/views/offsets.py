"""Offsets of the group of an application, as the cluster tells them now."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.admin import groups
from moldau.client import Client


def committed(client: Client, application: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return how far an application has come in a topic that it reads; -1 where it has not begun."""
    done = groups.committed(client, application)
    return {number: done[topic, number].offset if (topic, number) in done else -1 for number in sorted(partitions)}

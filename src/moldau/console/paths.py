"""Where things have their pages. Names are anything: all of their characters are quoted."""

from __future__ import annotations

from urllib.parse import quote


def topic(name: str, *more: str) -> str:
    return "/".join(("/topics", quote(name, safe=""), *more))


def record(name: str, partition: int, offset: int | None) -> str | None:
    """The messages of a partition from an offset on."""
    if offset is None:
        return None
    return topic(name, f"messages?partition={partition}&start=From+offset&at={offset}")


def lineage(name: str) -> str:
    """All that something comes from and leads to."""
    return f"/lineage?of={quote(name, safe='')}"


def group(name: str) -> str:
    return f"/groups/{quote(name, safe='')}"


def subject(name: str) -> str:
    return f"/schemas/{quote(name, safe='')}"


def application(name: str) -> str:
    return f"/applications/{quote(name, safe='')}"


def broker(number: int) -> str:
    return f"/brokers/{number}"

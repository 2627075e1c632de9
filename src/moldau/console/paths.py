"""The addresses of pages. A name may contain anything, so all its characters are quoted."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote


def _named(folder: str, name: str) -> str:
    return f"{folder}{quote(name, safe='')}"


group = partial(_named, "/groups/")
subject = partial(_named, "/schemas/")
connector = partial(_named, "/connectors/")
new_connector = partial(_named, "/new-connector?plugin=")
application = partial(_named, "/applications/")
sql_query = partial(_named, "/sql/queries/")
lineage = partial(_named, "/lineage?of=")


def topic(name: str, *more: str) -> str:
    return "/".join((_named("/topics/", name), *more))


def record(name: str, partition: int, offset: int | None) -> str | None:
    """Return the address of the messages of a partition from an offset on."""
    if offset is None:
        return None
    return topic(name, f"messages?partition={partition}&start=From+offset&at={offset}")


def broker(number: int) -> str:
    return f"/brokers/{number}"

"""What databases keep for replication slots: for those of connectors, and for those that nobody reads any more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from moldau.connect.connectors.cdc.postgres.connector import CONFIG
from moldau.connect.connectors.cdc.postgres.server import Server, Slot, lsn_text
from moldau.connect.plugins import find

COLUMNS = ("slot", "connector", "database", "active", "status", "confirmed", "lag_bytes", "kept_bytes", "bytes_left")
CLASS = "io.debezium.connector.postgresql.PostgresConnector"


def slots_of(configs: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the logical slots of all servers that connectors read, a row each. Each server is asked once."""
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for name, config in configs.items():
        plugin = find(config.get("connector.class", ""))
        if plugin is None or plugin.class_name != CLASS:
            continue
        parsed = CONFIG.parse(config)
        place = parsed["database.hostname"], parsed["database.port"]
        if not any(key[:2] == place for key in found):
            with closing(Server(parsed)) as server:
                found |= {(*place, slot.name): _row(slot) for slot in server.slots()}
        if (*place, parsed["slot.name"]) in found:
            found[(*place, parsed["slot.name"])]["connector"] = name
    return list(found.values())


def _row(slot: Slot) -> dict[str, Any]:
    return {
        "slot": slot.name,
        "connector": "",
        "database": slot.database,
        "active": slot.is_active,
        "status": slot.status,
        "confirmed": None if slot.confirmed_lsn is None else lsn_text(slot.confirmed_lsn),
        "lag_bytes": slot.lag,
        "kept_bytes": slot.kept,
        "bytes_left": slot.safe,
    }

"""The offset topic: how far the sources of connectors were read.

A key is `["CONNECTOR",{partition of the source}]`, a value the offset in it; null forgets it. Apache Connect looks
offsets up by the bytes of the key, so a key that is there is written again byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.connect.config_topic import dump

SourcePartition = Mapping[str, Any]
SourceOffset = Mapping[str, Any]


def frozen(partition: SourcePartition) -> str:
    """Return a partition as a key of a dict: equal ones give the same, in whatever order their fields are."""
    return json.dumps(partition, sort_keys=True)


@dataclass(slots=True)
class OffsetState:
    """What the offset topic says: connector -> partition -> key as it stands there, partition and offset."""

    known: dict[str, dict[str, tuple[bytes, SourcePartition, SourceOffset]]] = field(default_factory=dict)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in a record; ValueError or TypeError for one that makes no sense."""
        connector, partition = json.loads(key)
        offset = None if value is None else json.loads(value)
        if not isinstance(partition, dict) or not isinstance(offset, dict | None):
            raise ValueError(f"{key!r} is not a connector and a partition")
        of_connector = self.known.setdefault(str(connector), {})
        if offset is None:
            of_connector.pop(frozen(partition), None)
        else:
            of_connector[frozen(partition)] = key, partition, offset

    def reset(self) -> None:
        self.known.clear()

    def of(self, connector: str) -> list[tuple[SourcePartition, SourceOffset]]:
        return [(partition, offset) for _, partition, offset in self.known.get(connector, {}).values()]

    def offset(self, connector: str, partition: SourcePartition) -> SourceOffset | None:
        found = self.known.get(connector, {}).get(frozen(partition))
        return found[2] if found else None

    def encode(
        self, connector: str, partition: SourcePartition, offset: SourceOffset | None
    ) -> tuple[bytes, bytes | None]:
        """Return the record that a partition was read up to an offset."""
        found = self.known.get(connector, {}).get(frozen(partition))
        key = found[0] if found else dump([connector, partition])
        return key, None if offset is None else dump(dict(offset))

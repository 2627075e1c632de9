"""Metadata records written in the versions that a metadata.version asks for; `wire.metadata_records` reads them."""

from __future__ import annotations

from typing import Any

from moldau.wire import codec
from moldau.wire.errors import Unwritable
from moldau.wire.metadata_records import FRAME_VERSION, TOPIC, TOPIC_ID, decode

__all__ = ["FRAME_VERSION", "NEWEST", "TOPIC", "TOPIC_ID", "decode", "encode", "lowest_version"]

NEWEST = 30  # metadata.version
# From which metadata.version on a record exists, or has a version; the newest version first.
SINCE = {
    "RegisterControllerRecord": 15,
    "UserScramCredentialRecord": 11,
    "RemoveUserScramCredentialRecord": 11,
    "BeginTransactionRecord": 13,
    "EndTransactionRecord": 13,
    "AbortTransactionRecord": 13,
    "DelegationTokenRecord": 14,
    "RemoveDelegationTokenRecord": 14,
    "ClearElrRecord": 23,
}
VERSIONS = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (0, 1)),
    "PartitionRecord": ((23, 2), (17, 1), (0, 0)),
    "PartitionChangeRecord": ((23, 2), (17, 1), (0, 0)),
    "BrokerRegistrationChangeRecord": ((30, 3), (17, 2), (0, 1)),
}


def encode(record: Any, metadata_version: int = NEWEST) -> bytes:
    """Return a record's bytes in the version for a metadata.version; Unwritable if it cannot say this then.

    Its key and version are below 128, so each takes one byte.
    """
    name = record.SCHEMA.name
    if metadata_version < SINCE.get(name, 0):
        raise Unwritable(f"{name} needs metadata.version {SINCE[name]}, and the cluster has {metadata_version}")
    version = next((version for since, version in VERSIONS.get(name, ((0, 0),)) if metadata_version >= since))
    if name == "BrokerRegistrationChangeRecord":
        version = min(version, lowest_version(record))
    return bytes((FRAME_VERSION, record.SCHEMA.key, version)) + codec.encode(record, version)


def lowest_version(change: Any) -> int:
    """Return the lowest version that carries a change of a registration: Kafka writes it so."""
    if change.cordoned_log_dirs is not None:
        return 3
    return 2 if change.log_dirs else int(change.in_controlled_shutdown != 0)

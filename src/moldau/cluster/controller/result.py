"""What a decision gives back, and the checks that many of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.machines.metadata.cluster import Cluster
from moldau.wire.errors import Error


class Result(NamedTuple):
    """Records to write, and the answer to give when they are committed."""

    records: list[Any]
    response: Any


def broker_error(image: Cluster, broker_id: int, broker_epoch: int) -> Error:
    """Return STALE_BROKER_EPOCH unless the broker is registered with this epoch."""
    broker = image.brokers.get(broker_id)
    return Error.NONE if broker is not None and broker.epoch == broker_epoch else Error.STALE_BROKER_EPOCH

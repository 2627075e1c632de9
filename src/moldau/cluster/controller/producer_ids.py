"""AllocateProducerIds: a block of producer ids for a broker. An id is given out once in the life of a cluster."""

from __future__ import annotations

from typing import Any

from moldau.cluster.controller.result import Result, broker_error
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error

BLOCK = 1000
LARGEST = 2**63 - 1


def allocate_producer_ids(image: Cluster, request: Any) -> Result:
    """Answer AllocateProducerIds."""
    if error := broker_error(image, request.broker_id, request.broker_epoch):
        return Result([], m.AllocateProducerIdsResponse(error_code=error))
    first = image.next_producer_id
    if first > LARGEST - BLOCK:
        return Result([], m.AllocateProducerIdsResponse(error_code=Error.UNKNOWN_SERVER_ERROR))
    record = m.ProducerIdsRecord(request.broker_id, request.broker_epoch, first + BLOCK)
    return Result([record], m.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK))

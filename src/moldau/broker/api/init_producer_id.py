"""InitProducerId (key 22), v0-5: a producer id for idempotent writing.

v3 producer id and epoch of a producer that lives on (KIP-360).  v5 transaction version 2 (KIP-890).
Deviates: a transactional id is refused with COORDINATOR_NOT_AVAILABLE; transactions are not in this release.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

UNKNOWN = -1


@api(22, versions=(0, 5))
def init_producer_id(node, connection, request, version):
    error = Error.COORDINATOR_NOT_AVAILABLE if request.transactional_id else Error.INVALID_REQUEST
    half = (request.producer_id == UNKNOWN) != (request.producer_epoch == UNKNOWN)  # an id goes with an epoch
    if request.transactional_id is None and not half:
        try:
            return m.InitProducerIdResponse(producer_id=node.metadata.next_producer_id(), producer_epoch=0)
        except Refused as refused:  # the block of ids could not be written down
            error = refused.error
    return m.InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)

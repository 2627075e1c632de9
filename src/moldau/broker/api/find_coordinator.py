"""FindCoordinator (key 10), v0-6: which broker looks after a group or a transactional id.

v4 many keys at once (KIP-699).  v6 share groups (KIP-932).
Deviates: this release has no coordinators yet and says so with COORDINATOR_NOT_AVAILABLE. The key is answered all
the same, because librdkafka takes a broker without it for one that cannot read lz4.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.wire import messages as m
from moldau.wire.errors import Error

WHY = "groups and transactions are not supported by this release"


@api(10, versions=(0, 6))
def find_coordinator(node, connection, request, version):
    error = Error.COORDINATOR_NOT_AVAILABLE
    if version < 4:
        return m.FindCoordinatorResponse(error_code=error, error_message=WHY, node_id=-1, host="", port=-1)
    rows = [m.FindCoordinatorResponse_Coordinator(key, -1, "", -1, error, WHY) for key in request.coordinator_keys]
    return m.FindCoordinatorResponse(coordinators=rows)

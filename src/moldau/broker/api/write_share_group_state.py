"""WriteShareGroupState (key 85), v0-1: the leader of a share partition writes down what became of records (KIP-932).

v1 the count of records that are done (KIP-1226).  Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import api


@api(85, versions=(0, 1))
async def write_share_group_state(node, connection, request, version):
    return await node.share_state.write(request)

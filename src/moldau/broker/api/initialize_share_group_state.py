"""InitializeShareGroupState (key 83), v0: the group coordinator tells where a share partition begins (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import api


@api(83, versions=(0, 0))
async def initialize_share_group_state(node, connection, request, version):
    return await node.share_state.initialize(request)

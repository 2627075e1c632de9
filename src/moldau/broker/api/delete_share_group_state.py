"""DeleteShareGroupState (key 86), v0: the group coordinator forgets a share partition (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import api


@api(86, versions=(0, 0))
async def delete_share_group_state(node, connection, request, version):
    return await node.share_state.delete(request)

"""What leaders and brokers tell of partitions: AlterPartition (key 56), v2-3; AssignReplicasToDirs (key 73), v0.

A leader says who is in sync (KIP-841, KIP-903), a broker in which directories its replicas lie (KIP-858). See
cluster/controller/isr.py and directories.py.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.api.quorum import controller_of
from moldau.broker.node import Node
from moldau.cluster.controller.directories import assign_directories
from moldau.cluster.controller.isr import alter_partition
from moldau.wire import messages as m


@api(56, versions=(2, 3))
async def alter(node: Node, connection: Connection, request: m.AlterPartitionRequest, version: int) -> Answer:
    controller = controller_of(node)
    return await controller.decide(
        lambda proposal, _: alter_partition(proposal.image, request, version, proposal.policy)
    )


@api(73, versions=(0, 0))
async def assign(node: Node, connection: Connection, request: m.AssignReplicasToDirsRequest, version: int) -> Answer:
    controller = controller_of(node)
    answer = await controller.decide(lambda proposal, _: assign_directories(proposal.image, request, proposal.policy))
    if node.controller is controller:
        controller.help_out()  # who lies in a directory that works may lead, and nobody else may be there to do it
    return answer

"""Who takes part: BrokerRegistration (key 62), v0-4; BrokerHeartbeat (key 63), v0-2; and ControllerRegistration
(key 70), v0.

A broker registers, which gives it an epoch, and then tells the active controller again and again that it lives. See
cluster/controller/registration.py and heartbeats.py.

Registration: v1 migration from ZooKeeper (refused), v2 directories (KIP-858), v3 and v4 the epoch before (KIP-966).
Heartbeat: v1 directories that have failed, v2 cordoned ones.
Deviates: a broker that was told to stop, or whose process is gone, may register again at once (Kafka:
DUPLICATE_BROKER_REGISTRATION until its session is over); not with moldau.quick.fencing=false.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.api.quorum import controller_of, quorum_of
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.cluster.controller.registration import register, register_controller
from moldau.cluster.controller.result import Result
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(62, versions=(0, 4))
async def broker_registration(
    node: Node, connection: Connection, request: m.BrokerRegistrationRequest, version: int
) -> Answer:
    controller, kraft_version = controller_of(node), quorum_of(node).kraft_version

    def decide(proposal: Proposal, now_ms: float) -> Result:
        policy, cluster_id = proposal.policy, node.metadata.cluster_id
        offset, heard = proposal.next_offset, controller.heartbeats
        return register(proposal.image, request, version, offset, now_ms, heard, policy, cluster_id, kraft_version)

    response = await controller.decide(decide)
    if response.error_code == Error.DUPLICATE_BROKER_REGISTRATION:
        controller.has_successor(request.broker_id)
    return response


@api(63, versions=(0, 2))
async def broker_heartbeat(
    node: Node, connection: Connection, request: m.BrokerHeartbeatRequest, version: int
) -> Answer:
    controller = controller_of(node)
    controller.heard(request.broker_id, connection)

    def decide(proposal: Proposal, now_ms: float) -> Result:
        policy = proposal.policy
        return controller.heartbeats.heartbeat(proposal.image, request, now_ms, proposal.next_offset, policy)

    response = await controller.decide(decide)
    if not response.error_code and response.should_shut_down:
        controller.let_go(request.broker_id)
    return response


@api(70, versions=(0, 0))
async def controller_registration(
    node: Node, connection: Connection, request: m.ControllerRegistrationRequest, version: int
) -> Answer:
    return await controller_of(node).decide(lambda proposal, _: register_controller(proposal.image, request))

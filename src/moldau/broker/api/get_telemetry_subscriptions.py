"""GetTelemetrySubscriptions (key 71), v0: which metrics a client shall push, and how often (KIP-714).

A client that has no instance id yet gets one. Only with `moldau.telemetry=true`, as Kafka offers it only with a plugin
that takes the metrics.
Deviates: a subscription that has changed starts the interval anew only for the clients that it matters to.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.telemetry import ACCEPTED, wanted_of
from moldau.broker.topics import fresh_id
from moldau.wire import messages as m

NO_ID = bytes(16)


@api(71, versions=(0, 0), setting="moldau.telemetry")
def get_telemetry_subscriptions(
    node: Node, connection: Connection, request: m.GetTelemetrySubscriptionsRequest, version: int
) -> Answer:
    instance_id = request.client_instance_id
    if instance_id == NO_ID:
        instance_id = fresh_id(node)
    wanted = wanted_of(node.cluster, node.settings, connection, instance_id)
    now = node.clock.monotonic_ms()
    found = node.telemetry.instance(instance_id, wanted, now)
    if error := node.telemetry.get(found, now):
        return m.GetTelemetrySubscriptionsResponse(error_code=error)
    return m.GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=found.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=wanted.interval_ms,
        telemetry_max_bytes=node.settings["telemetry.max.bytes"],
        delta_temporality=True,
        requested_metrics=list(wanted.metrics),
    )

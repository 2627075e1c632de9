"""PushTelemetry (key 72), v0: the metrics of a client, in the form of OpenTelemetry (KIP-714).

They are counted, not read. Only with `moldau.telemetry=true`, as Kafka offers it only with a plugin that takes them.
Deviates: a subscription that has changed starts the interval anew only for the clients that it matters to.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.telemetry import is_reserved, wanted_of
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(72, versions=(0, 0), setting="moldau.telemetry")
def push_telemetry(node: Node, connection: Connection, request: m.PushTelemetryRequest, version: int) -> Answer:
    instance_id, telemetry, now = request.client_instance_id, node.telemetry, node.clock.monotonic_ms()
    if is_reserved(instance_id):
        return m.PushTelemetryResponse(error_code=Error.INVALID_REQUEST)
    found = telemetry.instance(instance_id, wanted_of(node.cluster, node.settings, connection, instance_id), now)
    return m.PushTelemetryResponse(error_code=telemetry.push(found, request, node.settings["telemetry.max.bytes"], now))

"""Settings of the Kafka clients of a worker, from those of Java's clients in worker.properties and connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from moldau.client.java_settings import translated
from moldau.settings import CONNECT, rows

T = TypeVar("T")
PRODUCER, CONSUMER, ADMIN = "producer.", "consumer.", "admin."
OVERRIDE = "override."
# Not for a client: settings of a worker under names that clients have too.
OF_WORKER = {"group.id", "session.timeout.ms", "heartbeat.interval.ms", "client.dns.lookup"}


def basic(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that all clients of a worker share: brokers and security."""
    return translated({name: text for name, text in worker.items() if name not in OF_WORKER})


def producer(worker: Mapping[str, str], connector: Mapping[str, str], client_id: str) -> dict[str, str]:
    own = {"acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random", "client.id": client_id}
    return {**basic(worker), **own, "linger.ms": "5", **_given(PRODUCER, worker, connector)}


def consumer(worker: Mapping[str, str], connector: Mapping[str, str], client_id: str, group: str) -> dict[str, str]:
    own = {"group.id": group, "client.id": client_id, "auto.offset.reset": "earliest"}
    more = {"enable.auto.commit": "false", "isolation.level": "read_uncommitted"}  # as Java's consumer
    more |= {"fetch.queue.backoff.ms": "10"}  # a full queue is empty long before the second that is the default
    given = _given(CONSUMER, worker, connector)
    if given.get("group.protocol", "").lower() != "consumer":  # there the broker says how soon
        more |= membership(worker)
    return {**basic(worker), **own, **more, **given}


def membership(worker: Mapping[str, str]) -> dict[str, str]:
    """Return how soon a dead member is missed, of the workers' group as of a sink's.

    With 45 s, the default of consumers, a sink's successor would wait for as long, though its task is said to run.
    """
    names = ("session.timeout.ms", "heartbeat.interval.ms")
    return {name: worker.get(name, str(rows(CONNECT)[name].default)) for name in names}


def _given(kind: str, worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Return what worker and connector say of one kind of client; the connector wins."""
    return translated(under(kind, worker) | under(kind + OVERRIDE, connector))


def under(prefix: str, given: Mapping[str, T]) -> dict[str, T]:
    """Return what stands under a prefix, without it."""
    return {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}

"""Telemetry of clients (KIP-714): who pushes metrics, what each is asked for, and how much has come.

A subscription is a resource of the type client metrics: beginnings of metric names, an interval, and which clients are
meant. A client gets the sum of all that match it, under an id that changes with what is asked. It may push once after
it has asked, and then once an interval. Nothing of this is kept over a restart: a client that is not known is taken
for a new one, and asks again when its subscription id has become a wrong one.

Kafka hands the metrics to a plugin of the user; here they are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from moldau.broker.connection import Connection
from moldau.log.checkpoints import encode_id
from moldau.machines.metadata.cluster import CLIENT_METRICS, Cluster
from moldau.settings import Settings, client_metrics_settings
from moldau.wire import messages as m
from moldau.wire.compression import Compression
from moldau.wire.crc import crc32c
from moldau.wire.errors import Error

EVERYTHING = "*"
INTERVAL_MS = 300_000  # of a client that no subscription matches
ACCEPTED = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
INSTANCES_MAX = 16_384
FORGOTTEN_AFTER = 3  # intervals, but a minute at least
RESERVED_IDS = 2  # the first ones are nobody's
ASKS_AGAIN = (Error.UNKNOWN_SUBSCRIPTION_ID, Error.UNSUPPORTED_COMPRESSION_TYPE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one client is asked for."""

    metrics: tuple[str, ...]
    interval_ms: int

    def id_for(self, instance_id: bytes) -> int:
        """Return the subscription id: another one when anything changes."""
        said = ",".join((*self.metrics, str(self.interval_ms))).encode() + instance_id
        number = crc32c(memoryview(said))
        return number - (1 << 32) if number >> 31 else number


@dataclass(slots=True)
class Instance:
    """A client, as long as it is remembered."""

    wanted: Wanted
    subscription_id: int
    seen_ms: float
    got_ms: float = -inf
    pushed_ms: float = -inf
    last_error: Error = Error.NONE
    terminating: bool = False

    def may_get(self, now: float) -> bool:
        if now - max(self.got_ms, self.pushed_ms) >= self.wanted.interval_ms:
            self.got_ms = now
            return True
        return self.last_error in ASKS_AGAIN

    def may_push(self, now: float) -> bool:
        if self.got_ms > self.pushed_ms or now - self.pushed_ms >= self.wanted.interval_ms:
            self.pushed_ms = now
            return True
        return False

    def is_forgotten(self, now: float) -> bool:
        return now - self.seen_ms >= max(60_000, FORGOTTEN_AFTER * self.wanted.interval_ms)


@dataclass(slots=True)
class Telemetry:
    """The clients that push, the least recently seen first, and what was counted."""

    instances: dict[bytes, Instance] = field(default_factory=dict[bytes, Instance])
    pushes: int = 0
    pushed_bytes: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])

    def instance(self, instance_id: bytes, wanted: Wanted, now: float) -> Instance:
        """Find a client, or make one if it is unknown or if what it is asked for has changed."""
        found = self.instances.pop(instance_id, None)
        if found is None or found.wanted != wanted or found.is_forgotten(now):
            found = Instance(wanted, wanted.id_for(instance_id), now)
        found.seen_ms = now
        self.instances[instance_id] = found
        if len(self.instances) > INSTANCES_MAX:
            del self.instances[next(iter(self.instances))]
        return found

    def living(self, now: float) -> int:
        return sum(not one.is_forgotten(now) for one in self.instances.values())

    def get(self, found: Instance, now: float) -> Error:
        """Note that a client asks what is wanted of it; returns an error if it asks too early."""
        if not found.may_get(now):
            return self.count_refusal(Error.THROTTLING_QUOTA_EXCEEDED)
        found.last_error = Error.NONE
        return Error.NONE

    def push(self, found: Instance, request: m.PushTelemetryRequest, max_bytes: int, now: float) -> Error:
        """Take the metrics of a client, or return why not."""
        error = found.last_error = self.count_refusal(objection(found, request, max_bytes, now))
        found.terminating = request.terminating
        if not error and request.metrics:
            self.pushes += 1
            self.pushed_bytes += len(request.metrics)
        return error

    def count_refusal(self, error: Error) -> Error:
        if error:
            self.refused[error.name] += 1
        return error


def objection(found: Instance, request: m.PushTelemetryRequest, max_bytes: int, now: float) -> Error:
    """Check a push in Kafka's order. The last push of a client may come early, and is the last one."""
    if found.terminating:
        return Error.INVALID_REQUEST
    if not found.may_push(now) and not request.terminating:
        return Error.THROTTLING_QUOTA_EXCEEDED
    if request.subscription_id != found.subscription_id:
        return Error.UNKNOWN_SUBSCRIPTION_ID
    if not 0 <= request.compression_type <= Compression.ZSTD:
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    return Error.TELEMETRY_TOO_LARGE if len(request.metrics) > max_bytes else Error.NONE


def is_reserved(instance_id: bytes) -> bool:
    return int.from_bytes(instance_id) < RESERVED_IDS


def wanted_of(cluster: Cluster, settings: Settings, connection: Connection, instance_id: bytes) -> Wanted:
    """Return the sum of the subscriptions that match a client."""
    known = traits(connection, instance_id)
    metrics: dict[str, None] = {}
    interval_ms = INTERVAL_MS
    for (kind, _), overrides in cluster.configs.items():
        if kind != CLIENT_METRICS:
            continue
        values = client_metrics_settings(settings, overrides)
        if matches(values["match"], known):
            metrics.update(dict.fromkeys(values["metrics"]))
            interval_ms = min(interval_ms, values["interval.ms"])
    names = (EVERYTHING,) if EVERYTHING in metrics else tuple(sorted(metrics))
    return Wanted(names, interval_ms)


def traits(connection: Connection, instance_id: bytes) -> Mapping[str, str]:
    """Return what the patterns of a subscription are held against."""
    name, version = connection.software
    return {
        "client_instance_id": encode_id(instance_id),
        "client_id": connection.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": connection.host,
        "client_source_port": connection.peer.rpartition(":")[2],
    }


def matches(patterns: Iterable[str], known: Mapping[str, str]) -> bool:
    """Tell whether a client is meant: all patterns must match, whole."""
    for pattern in patterns:
        name, _, expression = pattern.partition("=")
        if not re.fullmatch(expression.strip(), known[name.strip()]):
            return False
    return True

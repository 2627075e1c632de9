"""Registration of brokers and controllers, and its end.

Each process of a broker registers as a new incarnation and gets an epoch: the offset at which it is registered. Another
process with the same id is refused while the first is heard. Whoever registers anew is out of every ISR. If it cannot
name the epoch of the process before it, that one did not end in order and may have lost records: it is not eligible to
lead any more (KIP-966).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.cluster.controller.changes import in_isr, is_eligible_in, remove, rules_of
from moldau.cluster.controller.heartbeats import Heartbeats
from moldau.cluster.controller.policy import Policy, uses_eligible_leaders
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.cluster import METADATA_VERSION, Broker, Cluster
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.machines.metadata.topics import DIRECTORIES_SINCE
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

CONTROLLERS_SINCE = 15  # metadata.version
PREVIOUS_EPOCH_SINCE = 3  # version of the request
RESERVED_BELOW = 100  # a directory's id as a number


def register(
    image: Cluster,
    request: Any,
    version: int,
    next_offset: int,
    now_ms: float,
    heartbeats: Heartbeats,
    policy: Policy,
    cluster_id: str,
    kraft_version: int = 0,
) -> Result:
    """Answer BrokerRegistration; `next_offset` is the offset that the first record will have."""
    broker = image.brokers.get(request.broker_id)
    try:
        if request.cluster_id != cluster_id:
            raise Refused(Error.INCONSISTENT_CLUSTER_ID, f"The cluster's id is {cluster_id}, not {request.cluster_id}.")
        check_incarnation(request, broker, heartbeats, now_ms)
        if image.metadata_version >= DIRECTORIES_SINCE:
            check_directories(image, request)
        check_features(request, image.features | {KRAFT_VERSION: kraft_version})
    except Refused as refused:
        return Result([], m.BrokerRegistrationResponse(error_code=refused.error))
    record = registration_record(image, request, broker, next_offset)
    records: list[Any] = [record]
    if not is_same(request, broker):
        previous = request.previous_broker_epoch if version >= PREVIOUS_EPOCH_SINCE else None
        is_clean = broker is not None and previous == broker.epoch
        records = [*leave(image, request.broker_id, policy, is_clean=is_clean), record]
    heartbeats.registered(request.broker_id, next_offset + len(records) - 1)
    return Result(records, m.BrokerRegistrationResponse(broker_epoch=record.broker_epoch))


def is_same(request: Any, broker: Broker | None) -> bool:
    """Whether the registered process registers again, to change what it said."""
    return broker is not None and broker.incarnation == bytes(request.incarnation_id)


def check_incarnation(request: Any, broker: Broker | None, heartbeats: Heartbeats, now_ms: float) -> None:
    if broker is not None and not is_same(request, broker) and heartbeats.is_alive(broker, now_ms):
        problem = f"Another process is broker {broker.id}. If it has ended, its session is over soon."
        raise Refused(Error.DUPLICATE_BROKER_REGISTRATION, problem)
    if request.is_migrating_zk_broker:
        raise Refused(Error.BROKER_ID_NOT_REGISTERED, "Brokers under ZooKeeper cannot register here.")


def check_directories(image: Cluster, request: Any) -> None:
    """A broker has directories of its own, each with an id that nobody else has."""
    named = [bytes(one) for one in request.log_dirs]
    others = {
        one: broker.id for broker in image.brokers.values() if broker.id != request.broker_id for one in broker.log_dirs
    }
    taken = [one for one in named if one in others]
    if not named:
        problem = "The broker names no log directory."
    elif any(int.from_bytes(one, "big") < RESERVED_BELOW for one in named):
        problem = "The broker names a directory by an id that is reserved."
    elif len(set(named)) != len(named):
        problem = "The broker names a directory twice."
    elif taken:
        problem = f"Broker {others[taken[0]]} has a directory of the same id."
    else:
        return
    raise Refused(Error.INVALID_REGISTRATION, problem)


def check_features(request: Any, finalized: Mapping[str, int]) -> None:
    """A broker supports the level of every feature that the cluster uses."""
    supported = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    for name, levels in supported.items():
        check_level(name, finalized.get(name, 0), levels)
    if METADATA_VERSION not in supported:
        raise Refused(Error.INVALID_REGISTRATION, f"The broker does not say which {METADATA_VERSION} it supports.")
    for name, level in finalized.items():
        check_level(name, level, supported.get(name, (0, 0)))


def check_level(name: str, level: int, supported: tuple[int, int]) -> None:
    low, high = supported
    if not low <= level <= high:
        problem = f"The cluster has {name} {level}; the broker supports {low} to {high}."
        raise Refused(Error.UNSUPPORTED_VERSION, problem)


def registration_record(image: Cluster, request: Any, broker: Broker | None, next_offset: int) -> Any:
    """Return the record of a registration: fenced and with a new epoch, unless the same process registers again."""
    endpoints = [
        m.RegisterBrokerRecord_BrokerEndpoint(one.name, one.host, one.port, one.security_protocol)
        for one in request.listeners
    ]
    again = broker if is_same(request, broker) else None
    return m.RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset if again is None else again.epoch,
        end_points=endpoints,
        features=[row(m.RegisterBrokerRecord_BrokerFeature, one) for one in request.features],
        rack=request.rack,
        fenced=again is None or again.fenced,
        in_controlled_shutdown=again is not None and again.in_controlled_shutdown,
        log_dirs=list(request.log_dirs) if image.metadata_version >= DIRECTORIES_SINCE else [],
    )


def leave(image: Cluster, broker_id: int, policy: Policy, *, is_clean: bool) -> Iterator[Any]:
    """Take a broker that begins anew out of every ISR; if it may have lost records, it is not eligible either."""
    rules = rules_of(image, policy, leaving=broker_id)
    is_lost = uses_eligible_leaders(image) and not is_clean
    yield from remove(rules, in_isr(image, broker_id), broker_id, is_lost=is_lost)
    if is_lost:
        yield from remove(rules, is_eligible_in(image, broker_id), broker_id, is_lost=True)


def unregister(image: Cluster, broker_id: int, policy: Policy) -> Result:
    """Answer UnregisterBroker: forget a broker, which is then in no ISR."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        problem = f"Broker {broker_id} is not registered."
        return Result([], m.UnregisterBrokerResponse(error_code=Error.BROKER_ID_NOT_REGISTERED, error_message=problem))
    rules = rules_of(image, policy, leaving=broker_id)
    places = [*in_isr(image, broker_id), *is_eligible_in(image, broker_id)]
    records = [*remove(rules, places, broker_id), m.UnregisterBrokerRecord(broker_id, broker.epoch)]
    return Result(records, m.UnregisterBrokerResponse(error_message=None))


def register_controller(image: Cluster, request: Any) -> Result:
    """Answer ControllerRegistration."""
    if image.metadata_version < CONTROLLERS_SINCE:
        problem = f"Controllers register from {METADATA_VERSION} {CONTROLLERS_SINCE} on."
        code = Error.UNSUPPORTED_VERSION
        return Result([], m.ControllerRegistrationResponse(error_code=code, error_message=problem))
    record = m.RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            m.RegisterControllerRecord_ControllerEndpoint(one.name, one.host, one.port, one.security_protocol)
            for one in request.listeners
        ],
        features=[row(m.RegisterControllerRecord_ControllerFeature, one) for one in request.features],
    )
    return Result([record], m.ControllerRegistrationResponse(error_message=None))


def row(kind: Any, feature: Any) -> Any:
    return kind(feature.name, feature.min_supported_version, feature.max_supported_version)

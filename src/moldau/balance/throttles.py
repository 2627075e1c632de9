"""Throttles of moves: which settings they are, and how each is set and taken away again.

The rates are set for all brokers at once: a broker refuses to change the settings of another one, so those of a single
broker could not be taken away while it is gone. The lists of replicas that the rates hold for belong to topics. If
somebody has set any of them before, that value is remembered and comes back afterwards, unless it was changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moldau.admin import configs
from moldau.admin.configs import Change, Entry, Kind, Operation, Resource
from moldau.balance.moves import Move
from moldau.client import Client, ClientError, Error

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
ALL_BROKERS, EVERYTHING = "", "*"
DEFAULT_SOURCE = "DYNAMIC_DEFAULT_BROKER_CONFIG"
ASKED_AT_ONCE = 500
GONE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.RESOURCE_NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Throttle:
    """A setting that a run has changed, or is about to: its value before, None if there was none, and the run's."""

    kind: int
    resource: str
    name: str
    before: str | None
    value: str

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.resource}/{self.name}"


def wanted(moves: Iterable[Move], rate: int) -> dict[tuple[Resource, str], str]:
    """Return the settings that throttle moves, by resource and name; none if nothing is copied."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for move in moves:
        if move.adding:
            leaders.setdefault(move.topic, []).extend(f"{move.number}:{id}" for id in move.before)
            followers.setdefault(move.topic, []).extend(f"{move.number}:{id}" for id in move.adding)
    if not followers:
        return {}
    brokers = Resource(Kind.BROKER, ALL_BROKERS)
    found = {(brokers, name): str(rate) for name in (LEADER_RATE, FOLLOWER_RATE)}
    for name, lists in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
        found |= {(Resource(Kind.TOPIC, topic), name): ",".join(rows) for topic, rows in sorted(lists.items())}
    return found


def prepare(client: Client, moves: Sequence[Move], rate: int) -> list[Throttle]:
    """Return the throttles of moves, with the values that are there now. A topic that is throttled whole stays so."""
    settings = wanted(moves, rate)
    known = own(client, {resource for resource, _ in settings})
    made: list[Throttle] = []
    for (resource, name), value in settings.items():
        before = known.get((resource, name)) or None
        if before != EVERYTHING:
            both = f"{before},{value}" if before and resource.kind is Kind.TOPIC else value
            made.append(Throttle(resource.kind, resource.name, name, before, both))
    return made


def put(client: Client, throttles: Iterable[Throttle]) -> None:
    """Set throttles; a topic that was deleted meanwhile needs none."""
    grouped: dict[Resource, list[Change]] = {}
    for one in throttles:
        grouped.setdefault(_resource(one), []).append(Change(one.name, one.value))
    for resource, changes in grouped.items():
        _alter(client, resource, changes)


def take_away(client: Client, throttles: Sequence[Throttle]) -> None:
    """Bring back the values from before, except those that somebody else has changed since."""
    known = own(client, {_resource(one) for one in throttles})
    grouped: dict[Resource, list[Change]] = {}
    for one in throttles:
        if known.get((_resource(one), one.name)) == one.value:
            change = Change(one.name, one.before, Operation.DELETE if one.before is None else Operation.SET)
            grouped.setdefault(_resource(one), []).append(change)
    for resource, changes in grouped.items():
        _alter(client, resource, changes)


def _resource(throttle: Throttle) -> Resource:
    return Resource(Kind(throttle.kind), throttle.resource)


def _alter(client: Client, resource: Resource, changes: list[Change]) -> None:
    try:
        configs.alter(client, resource, changes)
    except ClientError as error:
        if error.error not in GONE:
            raise


def own(client: Client, resources: Iterable[Resource]) -> dict[tuple[Resource, str], str | None]:
    """Return the throttles that are set on resources themselves."""
    names = (LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS)
    found: dict[tuple[Resource, str], str | None] = {}
    for kind in (Kind.BROKER, Kind.TOPIC):
        of_kind = sorted((one for one in resources if one.kind is kind), key=lambda one: one.name)
        for at in range(0, len(of_kind), ASKED_AT_ONCE):
            described = _describe(client, of_kind[at : at + ASKED_AT_ONCE], names)
            found |= {
                (one, row.name): row.value for one, rows in described.items() for row in rows if _is_own(one, row)
            }
    return found


def _describe(client: Client, resources: list[Resource], names: Sequence[str]) -> dict[Resource, list[Entry]]:
    """Describe resources together, and one by one if some are gone."""
    try:
        return configs.describe_all(client, resources, names)
    except ClientError as error:
        if error.error not in GONE:
            raise
        if len(resources) == 1:
            return {}
    found: dict[Resource, list[Entry]] = {}
    for one in resources:
        found |= _describe(client, [one], names)
    return found


def _is_own(resource: Resource, entry: Entry) -> bool:
    return entry.source == DEFAULT_SOURCE if resource.kind is Kind.BROKER else entry.is_own

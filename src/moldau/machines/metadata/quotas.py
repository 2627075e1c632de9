"""Commands and queries on client quotas (KIP-546): who may produce, consume, ask and connect how much.

An entity is a user, a client id, both, or an address; the name None is the default of its kind. Which keys an entity
may have, and which of them are whole numbers, is a table.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.machines.metadata.cluster import Cluster, QuotaEntity
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
EXACT, DEFAULT, ANY = 0, 1, 2

# Key -> the largest whole number it takes, as a double has it; None where fractions count.
CLIENT_KEYS: Mapping[str, float | None] = {
    "producer_byte_rate": 2.0**63,
    "consumer_byte_rate": 2.0**63,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
IP_KEYS: Mapping[str, float | None] = {"connection_creation_rate": 2.0**31 - 1}
WHOLE = 1e-6  # how far from a whole number counts as one


@dataclass(frozen=True, slots=True)
class Alteration:
    """What a client asks for one entity: keys with new values, None to remove them, in its order."""

    entity: QuotaEntity
    values: Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class Component:
    """One condition of a query: the entity has this type, and the name that the match says."""

    entity_type: str
    match_type: int
    match: str | None


def alter_quotas(
    cluster: Cluster, alterations: Iterable[Alteration]
) -> tuple[list[Any], Mapping[QuotaEntity, Refused | None]]:
    """Records of what is in order, and for each entity whether it was. An entity may be named once."""
    records: list[Any] = []
    answer: dict[QuotaEntity, Refused | None] = {}
    for alteration in alterations:
        try:
            if alteration.entity in answer:
                raise invalid("the request names this entity twice")
            records += alter(cluster, alteration)
            answer[alteration.entity] = None
        except Refused as refused:
            answer[alteration.entity] = refused
    return records, answer


def alter(cluster: Cluster, alteration: Alteration) -> list[Any]:
    """Records for one entity, only where something changes; raises Refused."""
    keys = [key for key, _ in alteration.values]
    if len(set(keys)) < len(keys):
        raise invalid("the request changes a key twice")
    allowed = keys_of(alteration.entity)
    known = cluster.quotas.get(alteration.entity, {})
    for key, value in alteration.values:
        if value is not None:
            check_value(allowed, key, value)
    return [record(alteration.entity, key, value) for key, value in alteration.values if value != known.get(key)]


def record(entity: QuotaEntity, key: str, value: float | None) -> Any:
    parts = [m.ClientQuotaRecord_EntityData(*part) for part in entity]
    return m.ClientQuotaRecord(parts, key, value or 0.0, value is None)


def keys_of(entity: QuotaEntity) -> Mapping[str, float | None]:
    """Return the keys that an entity may have; refuses what is no entity."""
    if not entity:
        raise invalid("an entity has at least one part")
    for kind, name in entity:
        if kind not in TYPES:
            raise invalid(f"there is no entity type '{kind}'")
        if name == "":
            raise invalid(f"the name of a {kind} is not empty; null stands for the default")
    kinds = {kind for kind, _ in entity}
    if IP not in kinds:
        return CLIENT_KEYS
    if len(kinds) > 1:
        raise invalid("an address stands alone, without user or client id")
    if not is_address(entity[0][1]):
        raise invalid(f"'{entity[0][1]}' is not an IP address")
    return IP_KEYS


def is_address(name: str | None) -> bool:
    if name is None or name == "localhost":
        return True
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def check_value(allowed: Mapping[str, float | None], key: str, value: float) -> None:
    if key not in allowed:
        raise invalid(f"this entity has no quota '{key}'")
    if not value > 0:
        raise invalid(f"{key} must be more than 0")
    largest = allowed[key]
    if largest is not None and value > largest:
        raise invalid(f"{key} is at most {largest:.0f}")
    if largest is not None and value % 1 > WHOLE:
        raise invalid(f"{key} must be a whole number")


def describe_quotas(
    cluster: Cluster, components: Iterable[Component], strict: bool
) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
    """Return the entities that fit all the components; strict: and have no part besides them. Raises Refused."""
    wanted: dict[str, Component] = {}
    for component in components:
        check_component(component, wanted)
        wanted[component.entity_type] = component
    if IP in wanted and len(wanted) > 1:
        raise invalid("an address is not looked for together with a user or a client id")
    return [
        (entity, values)
        for entity, values in cluster.quotas.items()
        if (len(entity) == len(wanted) or not strict) and fits(dict(entity), wanted)
    ]


def check_component(component: Component, wanted: Mapping[str, Component]) -> None:
    kind = component.entity_type
    if not kind:
        raise invalid("an entity type is not empty")
    if kind in wanted:
        raise invalid(f"the filter names the entity type '{kind}' twice")
    if kind not in TYPES:
        raise Refused(Error.UNSUPPORTED_VERSION, f"There is no entity type '{kind}'.")
    if component.match_type not in MATCHES:
        raise invalid(f"there is no match type {component.match_type}")
    if (component.match is None) == (component.match_type == EXACT):
        raise invalid("an exact match needs a name, and any other match has none")


MATCHES: Mapping[int, Callable[[str | None, Component], bool]] = {
    EXACT: lambda name, component: name == component.match,
    DEFAULT: lambda name, component: name is None,
    ANY: lambda name, component: True,
}


def fits(entity: Mapping[str, str | None], wanted: Mapping[str, Component]) -> bool:
    return all(
        kind in entity and MATCHES[component.match_type](entity[kind], component) for kind, component in wanted.items()
    )


def invalid(problem: str) -> Refused:
    return Refused(Error.INVALID_REQUEST, f"Invalid quota: {problem}.")

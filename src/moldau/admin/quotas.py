"""Quotas of users, clients and addresses: described and changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.client import CONTROLLER, Client, check
from moldau.client import messages as m

EXACT, DEFAULT, ANY_NAME = 0, 1, 2  # how a filter means an entity
Entity = tuple[tuple[str, str | None], ...]  # (user, ada), (client-id, None): the default has no name


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entities of a type: one by name, the default (None), or any."""

    type: str
    name: str | None = None
    any: bool = False


def described(client: Client, filters: Iterable[Filter], *, strict: bool = True) -> dict[Entity, dict[str, float]]:
    """The quotas of the entities that the filters mean; `strict` leaves out entities that have other types too."""
    rows = [m.DescribeClientQuotasRequest_ComponentData(one.type, *_match(one)) for one in filters]
    answer = check(client.send(m.DescribeClientQuotasRequest(rows, strict)))
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def alter(
    client: Client,
    entity: Entity,
    new: Mapping[str, float],
    removed: Iterable[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of an entity, and take some back."""
    ops = [m.AlterClientQuotasRequest_OpData(key, value, False) for key, value in new.items()]
    ops += [m.AlterClientQuotasRequest_OpData(key, 0.0, True) for key in removed]
    parts = [m.AlterClientQuotasRequest_EntityData(kind, name) for kind, name in entity]
    entry = m.AlterClientQuotasRequest_EntryData(parts, ops)
    check(client.send(m.AlterClientQuotasRequest([entry], validate_only), CONTROLLER))


def _match(one: Filter) -> tuple[int, str | None]:
    if one.any:
        return ANY_NAME, None
    return (DEFAULT, None) if one.name is None else (EXACT, one.name)

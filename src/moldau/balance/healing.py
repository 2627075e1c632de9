"""Which brokers have been away for so long that their replicas are made anew elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.balance.journal import Away, Forgotten, Row
from moldau.balance.model import Model


def holders(model: Model) -> set[int]:
    """Return the brokers that have replicas."""
    return {id for one in model.partitions for id in one.replicas}


def sightings(model: Model, away: Mapping[int, int], now_ms: int) -> list[Row]:
    """Return what to write down: brokers that have replicas and are gone, and those that are back or have none."""
    gone = holders(model) & {broker.id for broker in model.brokers if not broker.alive}
    new: list[Row] = [Away(id, now_ms) for id in sorted(gone - away.keys())]
    return new + [Forgotten(f"away/{id}") for id in sorted(away.keys() - gone)]


def due(model: Model, away: Mapping[int, int], now_ms: int, heal_after_s: float) -> tuple[int, ...]:
    """Return the brokers to heal: gone for long enough, while most brokers are there. Where most are gone, the cause is
    probably not theirs, and the rest could not carry the load."""
    alive = sum(broker.alive for broker in model.brokers)
    if 2 * alive <= len(model.brokers):
        return ()
    return tuple(id for id, since_ms in sorted(away.items()) if now_ms - since_ms >= heal_after_s * 1000)


def left(model: Model, brokers: Iterable[int]) -> int:
    """Count the replicas that brokers still have."""
    ids = set(brokers)
    return sum(id in ids for one in model.partitions for id in one.replicas)

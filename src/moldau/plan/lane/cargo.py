# pyright: basic
"""What a flow runs in a lane: a parcel with all that source, steps and sink must know of it.

The plan with its functions is a pickle within the parcel, so that only those unpack it who call these functions: not
the process that plans batches.
"""

from __future__ import annotations

import json
import pickle
from functools import cached_property, lru_cache

from pyspark import cloudpickle

from moldau.spark import parcels

from ..conveyor.rows import Places
from ..conveyor.source import PLACES
from ..shards import Conveyed

Settings = tuple[tuple[str, str], ...]  # of a client


class Cargo:
    """What a flow runs. `options` are those of its own source, `passed` its sub-topologies without state, `keyed` the
    levels that are steps with state, in their order.
    """

    def __init__(self, options: dict[str, str], passed: frozenset[int], keyed: tuple[int, ...], packed: bytes) -> None:
        self.options, self.passed, self.keyed, self.packed = options, passed, keyed, packed

    @cached_property
    def conveyed(self) -> Conveyed:
        return pickle.loads(self.packed)

    @cached_property
    def places(self) -> Places:
        return Places.of_json(json.loads(self.options[PLACES]))

    @cached_property
    def shards(self) -> dict[int, int]:
        """The number of a shard by Spark's key."""
        return {key: number for number, key in enumerate(self.places.keys)}

    def to_bytes(self) -> bytes:
        return pickle.dumps((self.options, self.passed, self.keyed, self.packed))


def pack(conveyed: Conveyed) -> bytes:
    return cloudpickle.dumps(conveyed)


@lru_cache(parcels.MOST)
def cargo_of(settings: Settings, parcel: str) -> Cargo:
    """Return what a parcel has, the same object each time: caches of this process go by its plan."""
    return Cargo(*pickle.loads(parcels.get(settings, parcel)))

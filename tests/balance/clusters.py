"""Made-up clusters: models that hypothesis draws, and regular ones."""

from __future__ import annotations

from hypothesis import strategies as st

from moldau.balance.model import NOBODY, Broker, Model, Partition

GB = 10**9


def regular(brokers: int, partitions: int, factor: int = 3, *, new: int = 0, size: int = GB, racks: int = 0) -> Model:
    """Partitions dealt out in turn over brokers 1, 2, ...; `new` brokers have nothing yet."""
    ids = range(1, brokers + new + 1)
    made = [tuple((number + step) % brokers + 1 for step in range(factor)) for number in range(partitions)]
    return Model(
        tuple(Broker(id, f"r{id % racks}" if racks else None) for id in ids),
        tuple(Partition("t", number, of, of[0], of, size) for number, of in enumerate(made)),
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Small clusters of every kind: racks or none, small disks, brokers that are away, partitions without a leader."""
    count = draw(st.integers(1, 6))
    racks = draw(st.sampled_from((0, 2, 3)))
    sized = draw(st.booleans())
    brokers = tuple(
        Broker(
            id,
            f"r{draw(st.integers(0, racks - 1))}" if racks else None,
            takes=draw(st.integers(0, 5)) > 0,
            room_bytes=draw(st.integers(0, 40 * GB)) if sized else None,
            total_bytes=100 * GB if sized else None,
        )
        for id in range(1, count + 1)
    )
    partitions = tuple(partition(draw, number, count) for number in range(draw(st.integers(0, 14))))
    return Model(brokers, partitions)


def partition(draw: st.DrawFn, number: int, brokers: int) -> Partition:
    order = draw(st.permutations(range(1, brokers + 1)))
    replicas = tuple(order[: draw(st.integers(1, min(3, brokers)))])
    isr = tuple(id for id in replicas if draw(st.integers(0, 9)))
    leader = draw(st.sampled_from(isr)) if isr else NOBODY
    size, rate = draw(st.integers(0, 10)) * GB, draw(st.sampled_from((0, 0, 1, 5))) * 100_000
    fixed = leader == NOBODY or not draw(st.integers(0, 9))
    return Partition(f"t{number % 3}", number, replicas, leader, isr, size, rate, 2 * rate, fixed)

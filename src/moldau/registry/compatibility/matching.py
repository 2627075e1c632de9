"""Pairs off two sides of a graph so that as many as possible have a partner."""

from __future__ import annotations

from collections.abc import Sequence


def matching(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """Match left sides, each given by the right sides that fit it, with right sides.

    Each in turn looks, breadth first, for a chain of exchanges that ends at somebody who is free.
    """
    partner: dict[int, int] = {}  # right -> left
    for start in range(len(fitting)):
        reached: dict[int, int] = {}  # right -> the left that it was reached from
        waiting = [start]
        free = None
        while waiting and free is None:
            left = waiting.pop(0)
            for right in fitting[left]:
                if right not in reached:
                    reached[right] = left
                    if right not in partner:
                        free = right
                        break
                    waiting.append(partner[right])
        exchange(partner, reached, fitting, start, free)
    return {left: right for right, left in partner.items()}


def exchange(
    partner: dict[int, int], reached: dict[int, int], fitting: Sequence[Sequence[int]], start: int, free: int | None
) -> None:
    """Hand each right side of the chain to the left that reached it."""
    held = {left: right for right, left in partner.items()}
    while free is not None:
        left = reached[free]
        before = held.get(left)
        partner[free] = left
        free = None if left == start else before

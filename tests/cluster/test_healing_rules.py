"""When a damaged log may be left, and when it may go."""

from __future__ import annotations

import pytest

from moldau.cluster.healing import can_be_spared, may_begin_anew
from moldau.machines.metadata.cluster import Partition

ME = 1


@pytest.mark.parametrize(
    ("leader", "isr", "eligible", "spared", "anew"),
    [
        (1, (1, 2, 3), (), True, False),  # it leads, and others can
        (1, (1,), (), False, False),  # nobody else has all
        (2, (1, 2, 3), (), True, False),  # it may still be elected
        (2, (2, 3), (), True, True),
        (2, (2,), (1,), True, False),  # it counts as one that has all
        (-1, (), (1,), False, False),  # it alone has all
        (-1, (), (2,), False, False),  # nobody can be asked
    ],
)
def test_a_log_goes_only_when_nobody_can_need_it(
    leader: int, isr: tuple[int, ...], eligible: tuple[int, ...], spared: bool, anew: bool
) -> None:
    part = Partition(0, (1, 2, 3), isr, leader, 5, 7, eligible_leaders=eligible)
    assert (can_be_spared(part, ME), may_begin_anew(part, ME)) == (spared, anew)

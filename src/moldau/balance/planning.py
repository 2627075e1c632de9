"""`plan`: from a model to the moves that bring it to its goals.

Hard goals come first: replicas leave brokers that take none, and racks that they share. Then the soft goals are
improved in their order, by shifts that make no goal before worse and the one at hand better. So the violations, read as
a tuple in the order of the goals, become smaller with every step, and the planning ends. Whether a shift is good enough
depends only on where replicas are, not on how they came there: where one plan ends, the next one finds nothing to do.
Only the choice among good shifts looks back: the one that improves most for each byte is taken, and a replica that
moves anyway may move elsewhere for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, nsmallest
from typing import Any

from moldau.balance.goals import GOALS, HARD, Goal, Limits
from moldau.balance.layout import LEADERSHIP, Layout, Row, Shift, Spread
from moldau.balance.model import Model
from moldau.balance.moves import Move, Plan

MOST_ROUNDS = 100
MOST_CHAINS = 1_000
SWAPPED = 6  # replicas on each side that are tried
Key = tuple[Any, ...]


def plan(model: Model, goals: Sequence[Goal] = tuple(GOALS.values()), limits: Limits | None = None) -> Plan:
    """Plan moves that keep all hard goals and come as near to the others as they can. With no goals at all, only
    replicas on brokers that take none move, those that share a rack, and those that do not fit."""
    limits = limits or Limits()
    layout = Layout(model, goals, limits)
    if model.taking():
        _evacuate(layout)
        _separate_racks(layout)
        layout.open_goals()
        for _ in range(MOST_ROUNDS):
            if not sum(_improve(layout, level) for level in range(len(layout.rows))):
                break
    return _made(model, layout)


def _made(model: Model, layout: Layout) -> Plan:
    targets = layout.targets()
    elects = any(goal.leader is not goal.follower for goal in layout.goals)
    moves: list[Move] = []
    for index, part in enumerate(model.partitions):
        wanted = targets.get(index, part.replicas)
        leads = part.leader == wanted[0] or part.fixed or wanted[0] not in part.isr or not elects
        if index in targets or not leads:
            moves.append(Move(part.topic, part.number, part.replicas, wanted, part.leader, part.size))
    after = model.after({move.place: move.after for move in moves})
    counts = ((goal, goal.broken(after, layout.limits)) for goal in HARD)
    problems = tuple(goal.problem.format(f"{count:,}") for goal, count in counts if count)
    return Plan(tuple(moves), model, after, problems)


def _evacuate(layout: Layout) -> None:
    """Move replicas away from brokers that take none, large ones first."""
    leaving = [(index, id) for id in layout.held if id not in layout.taking for index in layout.held[id]]
    for index, source in sorted(leaving, key=lambda pair: (-layout.parts[pair[0]].size, pair)):
        _place(layout, index, source, layout.taking)


def _separate_racks(layout: Layout) -> None:
    """Move replicas that share a rack to racks that their partitions do not use yet."""
    known = set(layout.racks.values())
    for index, ids in enumerate(layout.replicas):
        for source in reversed(tuple(ids)):  # the leader last
            used = {layout.racks[id] for id in ids if id in layout.racks}
            others = [id for id in ids if id != source]
            if used < known and layout.distinct(others) == len(used) < len(ids) and source in layout.taking:
                _place(layout, index, source, {id for id in layout.taking if layout.racks[id] not in used})


def _place(layout: Layout, index: int, source: int, targets: Iterable[int]) -> None:
    """Move a replica to the best of some brokers: most racks, then the least load; nowhere if it fits nowhere."""
    shifts = [layout.shift_of(index, source, target) for target in targets]
    legal = [shift for shift in shifts if layout.is_legal(shift) and layout.rows[0].change(shift) <= 0]
    if legal:
        layout.apply(min(legal, key=lambda shift: _burden(layout, shift)))


def _burden(layout: Layout, shift: Shift) -> Key:
    kept = [id for id in layout.replicas[shift.part] if id != shift.source]
    room = layout.rows[0]
    assert isinstance(room, Row)
    return -layout.distinct([*kept, shift.target]), room.load[shift.target], len(layout.held[shift.target]), shift


def _improve(layout: Layout, level: int) -> bool:
    """Improve one goal; return whether anything changed."""
    row = layout.rows[level]
    if not row.total:
        return False
    if isinstance(row, Spread):
        scopes = [name for name in sorted(row.rows) if row.rows[name].total]
        return sum(_spread(layout, level, row.rows[name], name) for name in scopes) > 0
    changed = False
    if any(row.weights[LEADERSHIP]):
        changed = _exchange(layout, level, row, layout.held.__getitem__, lead_only=True) | _chain(layout, level, row)
    return _exchange(layout, level, row, layout.held.__getitem__) | changed


def _spread(layout: Layout, level: int, row: Row, topic: str) -> bool:
    """Spread one topic: by moves, then by replicas that change places with those of other topics."""
    of_topic = layout.of_topic[topic]
    changed = _exchange(layout, level, row, lambda broker: layout.held[broker] & of_topic)
    while row.total and any(_try(layout, level, swap) for swap in _swaps(layout, row, of_topic)):
        changed = True
    return changed


def _swaps(layout: Layout, row: Row, of_topic: set[int]) -> Iterator[list[Shift]]:
    """Yield exchanges of replicas of a topic for others of about the same size, only the likely ones."""
    for source, target in _pairs(layout, row):
        for part in sorted(layout.held[source] & of_topic)[:SWAPPED]:
            there = layout.shift_of(part, source, target)
            if not layout.is_legal(there):
                continue
            size = layout.parts[part].size
            others = ((abs(layout.parts[one].size - size), one) for one in layout.held[target] - of_topic)
            for _, other in nsmallest(SWAPPED, others):
                back = layout.shift_of(other, target, source)
                if layout.is_legal(back):
                    yield [there, back]


def _exchange(
    layout: Layout, level: int, row: Row, candidates: Callable[[int], set[int]], *, lead_only: bool = False
) -> bool:
    """Shift from brokers with much to brokers with little, until nothing is gained; return whether anything changed."""
    heaps: dict[tuple[int, int], list[tuple[Key, Shift]]] = {}
    changed = False
    while row.total:
        for pair in _pairs(layout, row):
            if pair not in heaps:
                heaps[pair] = _heap(layout, level, *pair, candidates(pair[0]), lead_only)
            shift = _best(layout, level, heaps[pair])
            if shift is not None:
                layout.apply(shift)
                changed = True
                break
        else:
            return changed
    return changed


def _pairs(layout: Layout, row: Row) -> Iterator[tuple[int, int]]:
    """Yield brokers between which a shift could help: from the fullest to the emptiest, if one is out of bounds."""
    order = sorted(layout.taking, key=lambda id: (row.load[id] - row.high[id], id))
    roomy = [id for id in order if row.load[id] < row.high[id]]
    lacking = [id for id in roomy if row.load[id] < row.low[id]]
    for source in reversed(order):
        if row.load[source] <= row.low[source]:
            continue
        for target in roomy if row.load[source] > row.high[source] else lacking:
            if target != source:
                yield source, target


def _heap(
    layout: Layout, level: int, source: int, target: int, candidates: set[int], lead_only: bool
) -> list[tuple[Key, Shift]]:
    there = layout.held[target]
    if lead_only:
        shifts = [Shift(part, source, target, LEADERSHIP) for part in candidates & there]
    else:
        shifts = [layout.shift_of(part, source, target) for part in candidates - there]
    heap = [(key, shift) for shift in shifts if (key := _key(layout, level, shift)) is not None]
    heapify(heap)
    return heap


def _best(layout: Layout, level: int, heap: list[tuple[Key, Shift]]) -> Shift | None:
    """Take the best shift from a heap whose keys may be old, and drop those that are of no use any more."""
    while heap:
        old, shift = heappop(heap)
        if layout.replicas[shift.part][0] == shift.source and shift.kind != LEADERSHIP:
            shift = layout.shift_of(shift.part, shift.source, shift.target)
        key = _key(layout, level, shift)
        if key is None:
            continue
        if key > old and heap and key > heap[0][0]:
            heappush(heap, (key, shift))
            continue
        return shift
    return None


def _key(layout: Layout, level: int, shift: Shift) -> Key | None:
    """Return how good a shift is for a goal, the best first; None if it is illegal, does not help, or harms a goal
    before it."""
    gain = -layout.rows[level].change(shift)
    if gain <= 0 or not layout.is_legal(shift):
        return None
    for row in layout.rows[:level]:
        if row.change(shift) > 0:
            return None
    later = tuple(row.change(shift) for row in layout.rows[level + 1 :])
    return -gain / max(1, layout.cost(shift)), later, -layout.parts[shift.part].size, shift.part


def _chain(layout: Layout, level: int, row: Row) -> bool:
    """Pass leads on over brokers in between, where those with many share no partition with those with few."""
    changed = False
    for _ in range(MOST_CHAINS):
        paths = _chains(layout, row)
        if not sum(all(map(layout.is_legal, path)) and _try(layout, level, path) for path in paths):
            return changed
        changed = True
    return changed


def _chains(layout: Layout, row: Row) -> Iterator[list[Shift]]:
    """Yield ways from each broker with too many leads, and to each with too few."""
    order = sorted(layout.taking)
    over = [id for id in order if row.load[id] > row.high[id]]
    under = {id for id in order if row.load[id] < row.low[id]}
    if not over and not under:
        return
    edges = _edges(layout, row)
    roomy = {id for id in order if row.load[id] < row.high[id]}
    spare = [id for id in order if row.load[id] > row.low[id]] if under else []
    for starts, goals in ((over, roomy), (spare, under)):
        for start in starts:
            yield from _ways(edges, start, goals)


def _edges(layout: Layout, row: Row) -> dict[int, dict[int, Shift]]:
    """Return a way to pass a lead from each broker directly to others: the lightest lead."""
    edges: dict[int, dict[int, Shift]] = {id: {} for id in layout.held}
    weights = row.weights[LEADERSHIP]
    for index, ids in enumerate(layout.replicas):
        for target in ids[1:] if weights[index] else ():
            known = edges[ids[0]].get(target)
            if known is None or weights[index] < weights[known.part]:
                shift = Shift(index, ids[0], target, LEADERSHIP)
                if layout.is_legal(shift):
                    edges[ids[0]][target] = shift
    return edges


def _ways(edges: dict[int, dict[int, Shift]], start: int, goals: set[int]) -> Iterator[list[Shift]]:
    """Search breadth-first for the shortest way to each goal."""
    came: dict[int, Shift | None] = {start: None}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        if at in goals and at != start:
            path: list[Shift] = []
            while (step := came[at]) is not None:
                path.append(step)
                at = step.source
            yield path[::-1]
            continue
        for target, shift in sorted(edges[at].items()):
            if target not in came:
                came[target] = shift
                queue.append(target)


def _try(layout: Layout, level: int, path: list[Shift]) -> bool:
    """Apply shifts together if they help a goal and harm none before it."""
    before = [row.total for row in layout.rows[: level + 1]]
    for shift in path:
        layout.apply(shift)
    after = [row.total for row in layout.rows[: level + 1]]
    if after[level] < before[level] and all(now <= was for now, was in zip(after, before, strict=True)):
        return True
    for shift in reversed(path):
        layout.undo(shift)
    return False

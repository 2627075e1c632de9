"""Moves of replicas: planned with as few bytes as needed, carried out some at a time, and called off.

A plan is pure. A move copies a partition only to brokers that do not have it yet, and the controller takes the old
replicas away when the new ones are in sync, so a move that is interrupted or called off loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.admin import TopicPartition, clusters, log_dirs, reassignments, topics
from moldau.admin.health import ANSWER_S
from moldau.admin.mistakes import Mistake
from moldau.admin.reassignments import Reassignment
from moldau.client import Client, ClientError

POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Move:
    """A partition with its replicas before and after, and the bytes of one replica."""

    topic: str
    index: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size: int = 0

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.index

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def bytes(self) -> int:
        """Return how many bytes have to be copied."""
        return self.size * len(self.adding)


@dataclass(frozen=True, slots=True)
class Replica:
    """What a plan has to know of a partition: who keeps it in the end, whether anybody leads it, and its bytes."""

    topic: str
    index: int
    brokers: tuple[int, ...]
    has_leader: bool
    size: int


@dataclass(frozen=True, slots=True)
class State:
    """What a plan goes by: partitions, the racks of the brokers that live, their bytes, and moves under way."""

    partitions: tuple[Replica, ...]
    racks: Mapping[int, str | None]
    known: frozenset[int]
    loads: Mapping[int, int]
    moving: Mapping[TopicPartition, Reassignment] = field(default_factory=dict[TopicPartition, Reassignment])


def look(client: Client) -> State:
    """Ask the cluster where everything is and how large it is. Of a move under way only the outcome counts."""
    cluster = clusters.described(client, fenced=True)
    alive = {one.id: one.rack for one in cluster.brokers if not one.is_fenced}
    moving = reassignments.known(client)
    sizes, loads = _sizes(log_dirs.answered(client, alive, ANSWER_S))
    found = []
    for topic in topics.listed(client):
        for part in topic.partitions:
            place = topic.name, part.index
            going = moving[place].removing if place in moving else ()
            final = tuple(broker for broker in part.replicas if broker not in going)
            found.append(Replica(*place, final, part.leader >= 0, sizes.get(place, 0)))
    return State(tuple(found), alive, frozenset(one.id for one in cluster.brokers), loads, moving)


def _sizes(folders: Mapping[int, list[log_dirs.LogDir]]) -> tuple[dict[TopicPartition, int], dict[int, int]]:
    """Return the bytes of the largest replica of each partition, and those of each broker."""
    sizes: dict[TopicPartition, int] = {}
    loads: dict[int, int] = {}
    for broker, found in folders.items():
        replicas = [replica for folder in found for replica in folder.replicas]
        loads[broker] = sum(replica.size for replica in replicas)
        for replica in replicas:
            sizes[replica.place] = max(sizes.get(replica.place, 0), replica.size)
    return sizes, loads


def drain(state: State, broker: int) -> list[Move]:
    """Plan to move every replica away from a broker; Mistake with a sentence where that cannot be.

    Each replica goes to one other broker and keeps its place in the list, so nothing else moves: to a rack that has no
    replica of the partition if there is one, then to the broker with the fewest bytes. Large ones are placed first.
    """
    if broker not in state.known:
        raise Mistake(f"There is no broker {broker}. `moldau cluster brokers` shows which there are.")
    loads = {one: state.loads.get(one, 0) for one in state.racks if one != broker}
    counts = {one: sum(one in part.brokers for part in state.partitions) for one in loads}
    moves = []
    for part in sorted(state.partitions, key=lambda one: -one.size):
        if broker not in part.brokers:
            continue
        others = [one for one in loads if one not in part.brokers]
        _check_movable(part, broker, others)
        taken = {state.racks.get(one) for one in part.brokers if one != broker}
        target = min(others, key=lambda one: (state.racks[one] in taken, loads[one], counts[one], one))
        loads[target] += part.size
        counts[target] += 1
        after = tuple(target if one == broker else one for one in part.brokers)
        moves.append(Move(part.topic, part.index, part.brokers, after, part.size))
    return moves


def _check_movable(part: Replica, broker: int, others: Sequence[int]) -> None:
    name = f"{part.topic}-{part.index}"
    if not part.has_leader:
        raise Mistake(f"{name} has no leader, so nobody could copy it: start a broker that has it first.")
    if not others:
        count = len(part.brokers)
        raise Mistake(
            f"{name} has {count} replicas, and besides {broker} there are no {count} live brokers for them: add a "
            "broker, or move the topic to fewer with `moldau topic move`."
        )


def move(state: State, topic: str, partitions: Iterable[int] | None, brokers: Sequence[int]) -> list[Move]:
    """Plan to move a topic, or some of its partitions, to these brokers; those that are there already are left out.

    The first broker is the preferred leader of a partition that is named; of a whole topic they take turns.
    """
    if missing := [one for one in brokers if one not in state.racks]:
        raise Mistake(f"Broker {missing[0]} is not there, or fenced. `moldau cluster brokers` shows which are up.")
    named = None if partitions is None else set(partitions)
    moves = []
    for part in state.partitions:
        if part.topic != topic or (named is not None and part.index not in named):
            continue
        turn = 0 if named is not None else part.index % len(brokers)
        after = (*brokers[turn:], *brokers[:turn])
        if after != part.brokers:
            if set(after) - set(part.brokers):
                _check_movable(part, -1, after)
            moves.append(Move(topic, part.index, part.brokers, after, part.size))
    return moves


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A move that the cluster carries out, whoever began it, and about how many bytes of how many are copied."""

    topic: str
    index: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied: int
    bytes: int

    @property
    def share(self) -> float:
        """Return how much of it is done, from 0 to 1; a move without bytes has nothing to do."""
        return min(1.0, self.copied / self.bytes) if self.bytes else 1.0


def under_way(moving: Mapping[TopicPartition, Reassignment], sizes: log_dirs.Sizes) -> list[UnderWay]:
    """Tell how far moves are, by the sizes of the replicas that they make."""
    found = []
    for place, move in sorted(moving.items()):
        known = sizes.get(place, {})
        whole = max((size for broker, size in known.items() if broker not in move.adding), default=0)
        copied = sum(min(whole, known.get(broker, 0)) for broker in move.adding)
        found.append(UnderWay(*place, move.adding, move.removing, copied, whole * len(move.adding)))
    return found


@dataclass(slots=True)
class Progress:
    """How far moves are: which are under way, how many are done, and about how many bytes are copied."""

    total: int
    waiting: list[Move]
    moving: dict[TopicPartition, Move] = field(default_factory=dict[TopicPartition, Move])
    done: list[Move] = field(default_factory=list[Move])
    copied: int = 0


def carry_out(client: Client, moves: Iterable[Move], at_a_time: int) -> Iterator[Progress]:
    """Carry out moves, at most some at a time; yields its one Progress whenever it was brought up to date.

    ClientError if the controller refuses one; those under way go on.
    """
    planned = list(moves)
    progress = Progress(sum(one.bytes for one in planned), planned)
    while progress.waiting or progress.moving:
        begun = progress.waiting[: at_a_time - len(progress.moving)]
        if begun:
            _begin(client, begun)
            progress.moving |= {one.place: one for one in begun}
            progress.waiting = progress.waiting[len(begun) :]
        under_way = reassignments.listed(client)
        ended = [one for place, one in progress.moving.items() if place not in under_way]
        for one in ended:
            progress.done.append(progress.moving.pop(one.place))
        progress.copied = sum(one.bytes for one in progress.done) + _copied(client, progress.moving)
        yield progress
        if progress.moving:
            client.brokers.sleep(POLL_S)


def _begin(client: Client, moves: Sequence[Move]) -> None:
    for place, (error, message) in reassignments.alter(client, {one.place: one.after for one in moves}).items():
        if error:
            raise ClientError(error, f"{place[0]}-{place[1]} cannot be moved: {message or error.message}")


def _copied(client: Client, moving: Mapping[TopicPartition, Move]) -> int:
    """Return how many bytes the new replicas have so far; brokers that do not answer count for nothing."""
    targets = {broker for one in moving.values() for broker in one.adding}
    copied = 0
    for broker, folders in log_dirs.answered(client, sorted(targets), ANSWER_S).items():
        for replica in (replica for folder in folders for replica in folder.replicas):
            one = moving.get(replica.place)
            if one is not None and broker in one.adding:
                copied += min(replica.size, one.size)
    return copied


def cancel(client: Client, places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Call off moves; return those that were under way. The old replicas stay as they were."""
    under_way = reassignments.listed(client)
    known = [place for place in places if place in under_way]
    outcomes = reassignments.alter(client, dict.fromkeys(known)) if known else {}
    return [place for place, (error, _) in outcomes.items() if not error]

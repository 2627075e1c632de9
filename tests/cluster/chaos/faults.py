"""What befalls a cluster: each fault is a function of the nodes, which the round ends by `calm`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol

from moldau.client import Client, ClientError
from moldau.testing import CLIENTS, Network, eventually
from moldau.wire import messages as m


class Node(Protocol):
    def stop(self) -> Any: ...


class Nodes(Protocol):
    """A cluster of real processes: `moldau.testing.Cluster`, or a mixed one."""

    @property
    def brokers(self) -> Mapping[int, Node]: ...
    @property
    def network(self) -> Network: ...
    @property
    def bootstrap_servers(self) -> str: ...
    def kill(self, node: int) -> None: ...
    def start_again(self, *nodes: int) -> None: ...
    def pause(self, node: int) -> None: ...
    def resume(self, node: int) -> None: ...
    def partition(self, *nodes: int, clients: bool = False, one_way: bool = False) -> None: ...
    def slow(self, *nodes: int, delay_s: float = 0.05, clients: bool = False) -> None: ...
    def heal(self) -> None: ...


class Chaos:
    """The cluster with what has befallen it, so that it can be ended."""

    def __init__(self, nodes: Nodes, random: Random) -> None:
        self.nodes = nodes
        self.random = random
        self.down: set[int] = set()
        self.frozen: set[int] = set()
        self.moved: dict[str, set[int]] = {}  # partitions that have not all their replicas
        self.unsure: set[tuple[str, int]] = set()  # partitions that a move may reach late, whose answer was lost

    def any(self, count: int = 1) -> list[int]:
        return self.random.sample(sorted(self.nodes.brokers), count)

    def wait(self, shortest_s: float, longest_s: float) -> None:
        time.sleep(self.random.uniform(shortest_s, longest_s))

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            if node not in self.down:
                self.frozen.discard(node)
                self.down.add(node)
                self.nodes.kill(node)

    def start(self, *nodes: int) -> None:
        if nodes:
            self.down -= set(nodes)
            self.nodes.start_again(*nodes)

    def pause(self, *nodes: int) -> None:
        for node in set(nodes) - self.down:
            self.frozen.add(node)
            self.nodes.pause(node)

    def stop(self, node: int) -> None:
        self.down.add(node)
        self.nodes.brokers[node].stop()

    def calm(self) -> None:
        """End all faults: mend the network, wake who is frozen, start who is down."""
        self.nodes.heal()
        for node in sorted(self.frozen):
            self.nodes.resume(node)
        self.frozen.clear()
        self.start(*sorted(self.down))
        self.put_back()

    def put_back(self) -> None:
        """Give partitions that were moved replicas on all nodes again, in any order, and wait for it."""
        if not self.moved:
            return
        with Client({"bootstrap.servers": self.nodes.bootstrap_servers}) as client:
            eventually(lambda: is_still(client), what="the end of the moves before")
            for topic, indexes in self.moved.items():
                eventually(lambda t=topic, i=indexes: is_asked(client, t, dict.fromkeys(i, self.any(3))), what=topic)
            eventually(lambda: not moving(client), what="the end of all moves")
        self.moved.clear()

    def put_back_late(self, client: Client) -> None:
        """Put partitions back once more that were moved since: a request without an answer may be carried out later."""
        if not self.unsure:
            return
        try:
            busy = moving(client, timeout_s=5)
            topics = client.send(m.MetadataRequest(None), timeout_s=5).topics
        except ClientError:
            return
        few = {(t.name, p.partition_index) for t in topics for p in t.partitions if len(p.replica_nodes) < 3}
        for topic, index in sorted(few & self.unsure - busy):
            is_asked(client, topic, {index: self.any(3)})


Fault = Callable[[Chaos], None]


def kill(chaos: Chaos) -> None:
    chaos.kill(*chaos.any())
    chaos.wait(0, 2)


def kill_and_start_at_once(chaos: Chaos) -> None:
    """Kill a node several times, so that it comes back before others have missed it."""
    (node,) = chaos.any()
    for _ in range(chaos.random.randint(1, 3)):
        chaos.kill(node)
        chaos.start(node)


def kill_two(chaos: Chaos) -> None:
    for node in chaos.any(2):
        chaos.kill(node)
        chaos.wait(0, 1)


def kill_all(chaos: Chaos) -> None:
    for node in chaos.any(len(chaos.nodes.brokers)):
        chaos.kill(node)


def pause(chaos: Chaos) -> None:
    chaos.pause(*chaos.any())
    chaos.wait(0.5, 6)


def pause_two(chaos: Chaos) -> None:
    """Freeze two nodes, and kill one sometimes while they sleep."""
    one, other = chaos.any(2)
    chaos.pause(one, other)
    chaos.wait(0.2, 4)
    if chaos.random.random() < 0.5:
        chaos.kill(one)


def cut(chaos: Chaos) -> None:
    chaos.nodes.partition(*chaos.any(), clients=chaos.random.random() < 0.5)
    chaos.wait(0.5, 6)


def cut_one_way(chaos: Chaos) -> None:
    """Let others hear nothing of a node, or it of them."""
    (node,) = chaos.any()
    others = [one for one in (*chaos.nodes.brokers, CLIENTS) if one != node]
    some = chaos.random.sample(others, chaos.random.randint(1, len(others)))
    speaks = chaos.random.random() < 0.5
    chaos.nodes.network.hold([(one, node) if speaks else (node, one) for one in some])
    chaos.wait(0.5, 6)


def cut_a_pair(chaos: Chaos) -> None:
    """Cut two nodes off from each other; the third hears both."""
    one, other = chaos.any(2)
    chaos.nodes.network.hold([(one, other), (other, one)])
    chaos.wait(0.5, 6)


def cut_all(chaos: Chaos) -> None:
    """Let no node hear another; clients reach all of them."""
    chaos.nodes.network.hold([(one, other) for one in chaos.nodes.brokers for other in chaos.nodes.brokers])
    chaos.wait(0.5, 4)


def flap(chaos: Chaos) -> None:
    """Cut and mend the ways to a node again and again."""
    (node,) = chaos.any()
    for _ in range(chaos.random.randint(2, 6)):
        chaos.nodes.partition(node, clients=chaos.random.random() < 0.5)
        chaos.wait(0.1, 1.5)
        chaos.nodes.heal()
        chaos.wait(0, 0.5)


def slow(chaos: Chaos) -> None:
    chaos.nodes.slow(*chaos.any(), delay_s=chaos.random.choice((0.02, 0.1, 0.5)), clients=chaos.random.random() < 0.5)
    chaos.wait(1, 5)


def reset(chaos: Chaos) -> None:
    """Break all connections to a node, several times."""
    (node,) = chaos.any()
    for _ in range(chaos.random.randint(1, 8)):
        chaos.nodes.network.reset([(one, node) for one in (*chaos.nodes.brokers, CLIENTS)])
        chaos.wait(0, 0.3)


def stop(chaos: Chaos) -> None:
    chaos.stop(*chaos.any())
    chaos.wait(0, 1)


def rolling_restart(chaos: Chaos) -> None:
    for node in chaos.any(len(chaos.nodes.brokers)):
        chaos.stop(node)
        chaos.start(node)


def cut_then_kill(chaos: Chaos) -> None:
    """Cut a node off, so that others lead on, and kill it or one of them before the cut is mended."""
    node, other = chaos.any(2)
    chaos.nodes.partition(node, clients=chaos.random.random() < 0.5)
    chaos.wait(0.2, 5)
    chaos.kill(chaos.random.choice((node, other)))
    chaos.wait(0, 1)


def pause_then_kill(chaos: Chaos) -> None:
    """Kill a node while another is frozen, and wake that one before the dead one is back."""
    frozen, dead = chaos.any(2)
    chaos.pause(frozen)
    chaos.wait(0.2, 4)
    chaos.kill(dead)
    chaos.wait(0, 1)
    chaos.frozen.discard(frozen)
    chaos.nodes.resume(frozen)
    chaos.wait(0, 1)


def moving(client: Client, timeout_s: float | None = None) -> set[tuple[str, int]]:
    """Return the partitions that are being moved."""
    topics = client.send(m.ListPartitionReassignmentsRequest(30_000), timeout_s=timeout_s).topics
    return {(topic.name, part.partition_index) for topic in topics for part in topic.partitions}


def is_still(client: Client) -> bool:
    """Call off all moves; tells whether there were none any more.

    Kafka does not forget what a move adds and removes if the next one adds and removes nothing: a partition that goes
    to all nodes while it is being moved ends without the replica that was to be removed.
    """
    moves = moving(client)
    for topic, index in moves:
        is_asked(client, topic, {index: None})
    return not moves


def is_asked(client: Client, topic: str, replicas: Mapping[int, list[int] | None]) -> bool:
    """Ask for moves, once; tells whether all of them were taken.

    If there is no answer they may be carried out at any time: a second request would hide that, although the first one
    may come after all that follows.
    """
    move = m.AlterPartitionReassignmentsRequest_ReassignablePartition
    row = m.AlterPartitionReassignmentsRequest_ReassignableTopic(topic, [move(*one) for one in replicas.items()])
    try:
        answer = client.send(m.AlterPartitionReassignmentsRequest(10_000, topics=[row]), timeout_s=15, retry=False)
    except ClientError:
        return False
    return not answer.error_code and not any(one.error_code for row in answer.responses for one in row.partitions)


def moves(chaos: Chaos) -> None:
    """Move partitions to two of the nodes, again and again, and often kill one meanwhile."""
    kill_after = chaos.random.randint(0, 6)
    with Client({"bootstrap.servers": chaos.nodes.bootstrap_servers}) as client:
        for number in range(chaos.random.randint(1, 5)):
            if number == kill_after:
                chaos.kill(*chaos.any())
            topic, index = chaos.random.choice(MOVED), chaos.random.randrange(3)
            chaos.moved.setdefault(topic, set()).add(index)
            if not is_asked(client, topic, {index: chaos.any(2)}):
                chaos.unsure.add((topic, index))
            chaos.wait(0, 1)


MOVED = "plain", "atomic"  # topics of trial.py
FAULTS: dict[str, tuple[int, Fault]] = {  # how often, relative to the others
    "kill -9": (3, kill),
    "kill -9, back at once": (2, kill_and_start_at_once),
    "kill -9 of two": (2, kill_two),
    "kill -9 of all": (1, kill_all),
    "SIGSTOP": (2, pause),
    "SIGSTOP of two": (1, pause_two),
    "cut off": (3, cut),
    "cut off one way": (3, cut_one_way),
    "two cut off from each other": (2, cut_a_pair),
    "all cut off from each other": (1, cut_all),
    "flapping link": (2, flap),
    "slow link": (2, slow),
    "connections reset": (2, reset),
    "stop": (1, stop),
    "rolling restart": (1, rolling_restart),
    "cut off, then kill -9": (2, cut_then_kill),
    "SIGSTOP, then kill -9 of another": (2, pause_then_kill),
    "moves": (3, moves),
}

"""The node asks itself over the simulated network, while it is killed, stopped and cut off."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.outbox import Lost, Peer
from moldau.wire import messages as m
from tests.simulation.faults import schedule
from tests.simulation.world import ENDPOINT, World

ITSELF = Peer(ENDPOINT.host, ENDPOINT.port)
EVERY_MS, TIMEOUT_MS = 3.0, 40.0
SEEDS = range(8)
REQUESTS = (m.DescribeClusterRequest, m.FindCoordinatorRequest, m.ListGroupsRequest)


class Asker:
    """Asks again and again, and checks that each life of the node hears of each request once, in order."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.open: dict[int, Any] = {}  # request -> the node that asked
        self.serial = 0
        self.outcomes: Counter[str] = Counter()
        world.events.after(EVERY_MS, self.ask)

    def ask(self) -> None:
        world, node = self.world, self.world.node
        world.events.after(world.random.uniform(0, 2 * EVERY_MS), self.ask)
        if not world.up:
            return
        if world.random.random() < 0.02:
            for link in [link for link in world.links if link.client.startswith("peer")]:
                link.cut()
        self.serial += 1
        number, request = self.serial, world.random.choice(REQUESTS)
        self.open[number] = node
        node.ask(ITSELF, request(), lambda outcome: self.hear(number, request, outcome), TIMEOUT_MS)
        assert number in self.open, "heard of it within the call"

    def hear(self, number: int, request: Any, outcome: Any) -> None:
        asked_by = self.open.pop(number)  # a second time is a KeyError
        assert asked_by is self.world.node, "a node heard of what another life of it had asked"
        if isinstance(outcome, Lost):
            self.outcomes["lost"] += 1
            return
        assert type(outcome).__name__ == request.__name__.replace("Request", "Response")
        earlier = [other for other, node in self.open.items() if node is asked_by and other < number]
        assert not earlier, f"{number} was answered before {earlier}"
        self.outcomes["answered"] += 1


def test_each_request_is_answered_or_lost_once_and_in_order() -> None:
    outcomes: Counter[str] = Counter()
    for seed in SEEDS:
        world = World(seed)
        asker = Asker(world)
        schedule(world)
        world.run_for(world.plan.length_ms)
        stale = [number for number, node in asker.open.items() if node is world.node and number < asker.serial - 100]
        assert not stale, f"seed {seed}: nothing was ever heard of {stale}"
        outcomes += asker.outcomes
        outcomes["starts"] += world.counts["starts"]
    assert min(outcomes["answered"], outcomes["lost"], outcomes["starts"]) > len(SEEDS), outcomes

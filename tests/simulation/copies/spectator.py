"""A consumer of the copies that reads along, with isolation.level=read_committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.copies.output import Side
from tests.simulation.network import Peer
from tests.simulation.script import Call, Script, Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

VERSION = 12


class Spectator:
    """Follows all partitions of the output."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.peer = Peer(world, name)
        self.script = Script(world, self.live())

    def live(self) -> Steps[None]:
        while True:
            side = self.world.random.choice(self.world.sides)
            offset = side.position
            answer = yield Call(self.peer, fetch_request(self.world, side, offset), VERSION)
            if answer is not None:
                part = answer.responses[0].partitions[0]
                if part.error_code:
                    self.world.check_output(side, Error(part.error_code))
                elif side.position == offset:  # nobody else has read on meanwhile
                    side.read(part)
            yield self.world.random.uniform(1, 3) * self.world.plan.pause_ms


def fetch_request(world: World, side: Side, offset: int) -> Any:
    random = world.random
    wanted = m.FetchRequest_FetchPartition(
        partition=side.index, fetch_offset=offset, partition_max_bytes=random.choice((1, 300, 1 << 20))
    )
    return m.FetchRequest(
        max_wait_ms=random.choice((0, 20)),
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        session_epoch=-1,
        topics=[m.FetchRequest_FetchTopic(topic=side.topic, partitions=[wanted])],
    )

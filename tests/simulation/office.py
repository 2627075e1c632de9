"""The line to a coordinator: a client looks it up first, and again when it is told to, as all clients do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.network import Peer
from tests.simulation.properties import Broken, Property
from tests.simulation.script import Call, Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

GROUP, TRANSACTION = 0, 1
BATCHED, NEWEST = 4, 6
AWAY = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS)


class Office:
    """The coordinator of a group or of a transactional id, as one client knows it."""

    def __init__(self, world: World, client: str, key: str, key_type: int) -> None:
        self.world = world
        self.peer = Peer(world, client)
        self.key = key
        self.key_type = key_type
        self.found = False

    def ask(self, request: Any, version: int, patient: bool = True) -> Steps[Any]:
        """The answer; None when it is lost or there is no coordinator.

        Who is patient goes on only when what was lost can no longer arrive.
        """
        if not self.found:
            yield from self.look_up()
        answer = (yield Call(self.peer, request, version)) if self.found else None
        if answer is None and (patient or not self.found):
            yield self.world.ghost_ms()
        return answer

    def look_up(self) -> Steps[None]:
        version = self.world.random.randrange(1, NEWEST + 1)
        keys = [self.key] if version >= BATCHED else []
        request = m.FindCoordinatorRequest("" if keys else self.key, self.key_type, keys)
        answer = yield Call(self.peer, request, version)
        if answer is None:
            return
        error = Error((answer.coordinators[0] if keys else answer).error_code)
        self.found = error is Error.NONE
        if not self.found and not self.is_away(error):
            raise Broken(Property.ANSWERS, f"the coordinator of {self.key} was looked for: {error.name}")

    def is_away(self, error: Error) -> bool:
        """Whether an answer says that there is no coordinator just now; may it say so?"""
        if error not in AWAY:
            return False
        self.found = self.found and error is Error.COORDINATOR_LOAD_IN_PROGRESS
        if not self.world.coordinators_may_fail():
            raise Broken(Property.SOUND_STAYS_ONLINE, f"the coordinator of {self.key}: {error.name}")
        return True

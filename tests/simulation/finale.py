"""The end of a world: all faults are over, perhaps one more restart, and then everything must work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire.errors import Error
from tests.simulation.ledger import Ledger
from tests.simulation.network import Peer
from tests.simulation.producers import Session, produce_request
from tests.simulation.properties import Property

if TYPE_CHECKING:
    from tests.simulation.world import World

CALM_MS = 300
PROBE_MS = 3000
"""Longer than any timer of the node."""


def finish(world: World) -> None:
    """Let the clients come to rest, restart or not, write and read every sound partition, and audit all of it."""
    world.calm_down()
    world.run_for(CALM_MS)
    restart = world.random.choice((None, world.stop, lambda: world.die(False), lambda: world.die(True)))
    if restart is not None and world.up:
        restart()
        world.run_for(CALM_MS)
    if world.over:
        return
    assert world.up, "the node has had time to start"
    answers = probe(world)
    world.run_for(PROBE_MS)
    for ledger, errors in answers.items():
        if errors != [Error.NONE]:
            raise ledger.broken(Property.GOES_ON, f"the last batch was answered with {errors}")
    for ledger in world.ledgers():
        world.auditor.audit(ledger)


def probe(world: World) -> dict[Ledger, list[Error]]:
    """Send one batch to each partition that has no excuse; the answers arrive later."""
    answers: dict[Ledger, list[Error]] = {}
    peer = Peer(world, "probe")
    for number, ledger in enumerate(world.ledgers()):
        if not (ledger.faulty or ledger.rotten or ledger.index_rotten or ledger.topic.doomed):
            answers[ledger] = []
            send(world, peer, Session(ledger, f"last{number}", False, True), answers[ledger])
    return answers


def send(world: World, peer: Peer, session: Session, errors: list[Error]) -> None:
    batch = session.next_batch(world)
    session.ledger.sends(batch)

    def answered(answer: Any) -> None:
        part = answer.responses[0].partition_responses[0]
        errors.append(Error(part.error_code))
        if not part.error_code:
            session.ledger.acknowledged(batch, part.base_offset, world.clock.now)

    peer.call(produce_request([(session, batch)], 12, -1, 30_000), 12, answered, lambda: errors.append(Error(-1)))

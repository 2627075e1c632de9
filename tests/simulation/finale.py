"""The end of a world: all faults are over, perhaps one more restart, and then everything must work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.wire.errors import Error
from tests.simulation.ledger import Ledger
from tests.simulation.network import Peer
from tests.simulation.plan import COPY, INPUT, MADE_AGAIN_MS
from tests.simulation.producers import Session, produce_request
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.simulation.world import World

CALM_MS = 300
DRAIN_MS, DRAIN_ROUNDS, MOST_ROUNDS = 500, 60, 600  # rounds in which nothing is done, and rounds in all
PROBE_MS = 3000
"""Longer than any timer of the node."""


def finish(world: World) -> None:
    """Let the clients come to rest, restart or not, write and read every sound partition, and audit all of it."""
    world.calm_down()
    world.run_for(CALM_MS)
    restarts: list[Callable[[], None] | None] = [world.stop, lambda: world.die(False)]
    if not world.groups():
        restarts += [None, lambda: world.die(True)]
    elif not world.coordinators_may_fail():
        restarts.append(None)
    restart = world.random.choice(restarts)
    if restart is not None and world.up:
        restart()
        world.run_for(CALM_MS)
    if world.over:
        return
    assert world.up, "the node has had time to start"
    drain(world)
    if any(ledger.high == 0 and world.was_unmade(ledger) for ledger in world.ledgers()):
        world.run_for(MADE_AGAIN_MS)
    answers = probe(world)
    world.run_for(PROBE_MS)
    for ledger, errors in answers.items():
        if errors != [Error.NONE]:
            raise ledger.broken(Property.GOES_ON, f"the last batch was answered with {errors}")
    for ledger in world.ledgers():
        world.auditor.audit(ledger)


def drain(world: World) -> None:
    """The groups read on, and the copiers copy, until all is done and every transaction has ended."""
    if not world.groups():
        return
    world.draining = True
    world.crowd.thin_out()
    wait_for(world, unfinished, Property.GOES_ON)
    world.crowd.stop()
    wait_for(world, undecided, Property.ALL_ENDS)
    if not world.lost_power:
        for group in world.groups():
            if group.name != COPY:
                group.check_delivered()
        world.book.check_whole()


def wait_for(world: World, left: Callable[[World], list[str]], which: Property) -> None:
    """Until nothing is left; after a loss of power nothing is promised. It may last, as long as some of it is done: a
    copier does not heartbeat in a transaction, so where sessions are shorter than that it loses its place most times.
    """
    before, idle = list[str](), 0
    for _ in range(MOST_ROUNDS):
        world.run_for(DRAIN_MS)
        world.auditor.audit_groups()
        world.auditor.audit_copies()
        now = left(world)
        if world.lost_power or not now:
            return
        idle = idle + 1 if now == before else 0
        if idle == DRAIN_ROUNDS:
            break
        before = now
    raise Broken(which, "; ".join(left(world)))


def undecided(world: World) -> list[str]:
    """Transactions that have not ended, for their coordinator or in a partition."""
    left = [f"{one.transactional_id} is {one.transaction_state}" for one in world.auditor.transactions()]
    return left + [f"{where} is decided to {stable} of {high}" for where, stable, high in world.auditor.internal_ends()]


def unfinished(world: World) -> list[str]:
    left = [f"group {group.name}: {what}" for group in world.groups() for what in group.unread()]
    left += [f"{side} is decided to {side.stable} of {side.high}" for side in world.sides if side.stable < side.high]
    if world.sides:
        for ledger, side in zip(world.topics[INPUT].ledgers, world.sides, strict=False):
            if len(side.values) < ledger.high:
                left.append(f"{side} holds {len(side.values)} of {ledger.high} copies")
    return left


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

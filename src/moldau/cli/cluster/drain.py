"""`moldau cluster drain`: all replicas of a broker are moved to the others."""

from __future__ import annotations

from moldau.admin import clusters, moves
from moldau.admin.mistakes import Mistake
from moldau.cli import moving
from moldau.cli.cluster.verbs import verb
from moldau.cli.commands import Sure
from moldau.cli.options import argument, flag, option
from moldau.cli.output import size
from moldau.cli.session import Session

ROUNDS = 5  # topics may be created there while it is drained


@verb("drain", "moldau cluster drain 3 --plan", "moldau cluster drain 3 --at-a-time 10")
def drain(
    session: Session,
    broker: int = argument("The id of the broker.", metavar="BROKER"),
    plan: bool = flag("--plan", "Show the moves; change nothing."),
    at_a_time: int = option("--at-a-time", "Move at most this many partitions at once.", 5, min=1),
    sure: Sure = False,
) -> None:
    """Move every replica away from a broker, so that it can be stopped for good.

    Only its own replicas move, each to one other broker: to a rack without a replica of the partition if there is one,
    then to the broker with the fewest bytes. Old replicas go when the new ones are in sync. Ctrl-C offers to cancel
    what is under way; started again, the command goes on.
    """
    state = moves.look(session.client)
    planned = moves.drain(state, broker)
    if plan:
        moving.show(session, planned)
        return
    to_copy = size(sum(one.bytes for one in planned))
    session.confirm(f"Move {len(planned)} replicas away from broker {broker}, {to_copy} to copy?", sure)
    count = copied = 0
    for _ in range(ROUNDS):
        waited = [_under_way(state, place) for place, one in state.moving.items() if broker in one.removing]
        if not planned and not waited:
            break
        copied += moving.carry_out(session, [*planned, *waited], at_a_time)
        count += len(planned) + len(waited)
        state = moves.look(session.client)
        planned = moves.drain(state, broker)
    if planned:
        raise Mistake(f"Replicas still come to broker {broker}: {planned[0].name} is one. Start the command again.")
    _report(session, broker, count, copied)


def _under_way(state: moves.State, place: tuple[str, int]) -> moves.Move:
    """Return a move that was begun before: to begin it again changes nothing."""
    one = state.moving[place]
    before = tuple(broker for broker in one.replicas if broker not in one.adding)
    after = tuple(broker for broker in one.replicas if broker not in one.removing)
    size_of = {(part.topic, part.index): part.size for part in state.partitions}
    return moves.Move(*place, before, after, size_of.get(place, 0))


def _report(session: Session, broker: int, count: int, copied: int) -> None:
    sentence = f"Broker {broker} has no replicas any more: {count} moved, {size(copied)} copied."
    quorum = clusters.known_quorum(session.client)
    votes = quorum is not None and any(one.id == broker and one.is_voter for one in quorum.replicas)
    if votes:
        sentence += f" It votes in the quorum still: see `moldau cluster voters remove {broker}`."
    session.done(sentence, broker=broker, moved=count, bytes=copied, votes=votes)

"""Begin, steer and watch runs from a process that is not a balancer for good: a command, the console."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from moldau.admin.mistakes import Mistake
from moldau.balance.balancer import Balancer, opened
from moldau.balance.journal import CODEC, TOPIC, Journal, Run
from moldau.balance.moves import Plan
from moldau.balance.progress import Wish
from moldau.client import Client, Fetched, records
from moldau.topicstore import Reader, StoreError, exists

Act = Callable[[Balancer], None]


class JournalReader:
    """The journal as a reader sees it. It creates no topic and joins no group; one thread at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._journal = Journal()
        self._reader = Reader(client, TOPIC, self._open)

    def read(self) -> Journal:
        """Read on, and return what the journal says now; an empty one if there never was a run."""
        if exists(self._client, TOPIC):
            self._reader.read_to_end()
        return self._journal

    def _open(self, _: int, start: int) -> _Replay:
        self._journal = Journal()
        return _Replay(self._journal, start)


class _Replay:
    """The partition of the journal, replayed."""

    def __init__(self, journal: Journal, position: int) -> None:
        self.journal, self.position = journal, position

    def take(self, fetched: Fetched) -> None:
        for batch in fetched.committed():
            for record in records(batch):
                if record.offset >= self.position:
                    with suppress(ValueError, KeyError, TypeError):  # it is none of ours
                        self.journal.replay(CODEC.decode(record))
        self.position = fetched.next_offset(self.position)

    def skip_to(self, end: int) -> None:
        self.position = max(self.position, end)


@contextmanager
def taking_part(settings: Mapping[str, Any]) -> Iterator[Balancer]:
    """Open a balancer once the group has elected one; Mistake if the journal cannot be used."""
    try:
        with opened(settings) as balancer:
            balancer.wait_for_election()
            yield balancer
    except StoreError as error:
        raise Mistake(str(error)) from None


def unfinished(journal: Journal) -> Run | None:
    """Return the run that has not come to its end: it runs, is paused, or was stopped."""
    return None if journal.run is None or journal.run.is_over else journal.run


def begin(made: Plan, purpose: str, rate: int, remedy: str) -> Act:
    """Return how to hand in a plan; it raises Mistake, with the remedy, if another one is unfinished."""

    def act(balancer: Balancer) -> None:
        run = unfinished(balancer.journal)
        if run is not None:
            raise Mistake(f"A plan is unfinished ({run.purpose}; {run.state.rstrip('.')}): {remedy}.")
        balancer.submit(made, purpose, rate)

    return act


def steer(wish: Wish) -> Act:
    """Return how to let an unfinished run go on, pause or end; it raises Mistake if there is none."""

    def act(balancer: Balancer) -> None:
        if unfinished(balancer.journal) is None:
            raise Mistake("No plan is unfinished.")
        if wish is Wish.RUN:
            balancer.resume()
        else:
            balancer.want(wish)

    return act

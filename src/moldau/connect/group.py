"""The workers of a cluster: who leads, and which connector or task each of them has.

They are members of the group `group.id`, of Connect's own type but with a protocol of ours: beside workers of Apache
Connect none of ours is let in, nor one of theirs beside ours. The group's leader shares out the units (a connector or
a task each) with `flows.assignment`: a unit goes to another worker after the one before has let it go. With its
assignment each worker is told the leader's address, and a key that signs what workers tell each other.
"""

from __future__ import annotations

import base64
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from moldau.client import Client, ClientError, Error, Generation, Member, Peer
from moldau.flows.assignment import share_out
from moldau.http import ServeError

log = logging.getLogger(__name__)
GROUP_TYPE, PROTOCOL = "connect", "moldau-1"
Unit = tuple[str, int | None]  # a connector, or a task of it


@dataclass(frozen=True, slots=True)
class Leader:
    """The worker that writes the config topic."""

    url: str


class Group(Protocol):
    """This worker's place among the others."""

    key: bytes

    @property
    def leads(self) -> bool: ...
    @property
    def leader(self) -> Leader | None: ...
    @property
    def generation(self) -> int: ...
    def wait(self, timeout_s: float) -> Leader | None: ...
    def look(self) -> tuple[frozenset[Unit], bool]:
        """Return the units that this worker has, and whether the group has lost it since the last look."""
        ...

    def share_out_if(self, changed: Callable[[frozenset[Unit]], bool]) -> None:
        """Share out anew if the units are not those of the last time."""
        ...

    def rejoin(self) -> None:
        """Tell the others that units were let go."""
        ...

    def renew(self) -> None:
        """Lead anew: another writer was here meanwhile."""
        ...

    def check(self) -> None:
        """Raise ServeError if this worker cannot be in the group."""
        ...


class Workers:
    """A group of several workers. `units` are all there are, `owned` those of this worker. One that `is_idle` answers
    requests, and may lead, but has no units.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        url: str,
        units: Callable[[], Iterable[Unit]],
        owned: Callable[[], Iterable[Unit]],
        before_leading: Callable[[], None],
        wake: Callable[[], None],
        *,
        is_idle: bool = False,
    ) -> None:
        self.key = b""
        self._group_id, self._url, self._units, self._owned = group_id, url, units, owned
        self._before_leading, self._wake, self._is_idle = before_leading, wake, is_idle
        self._changed = threading.Condition()
        self._leader: Leader | None = None
        self._led = False
        self._given: frozenset[Unit] = frozenset()
        self._is_lost = False
        self._shared_out: frozenset[Unit] = frozenset()
        self._member = Member(
            client,
            group_id,
            GROUP_TYPE,
            self._introduction,
            self._assign,
            on_assigned=self._assigned,
            on_revoked=lambda _: None,  # what moves is told by the next assignment
            on_lost=self._lost,
        )

    def start(self) -> None:
        self._member.start()

    def close(self) -> None:
        self._member.close()

    @property
    def leads(self) -> bool:
        """Whether this worker writes, also while the group rebalances: a successor's first write fences it."""
        with self._changed:
            return self._led and self._member.failure is None

    @property
    def leader(self) -> Leader | None:
        with self._changed:
            return self._leader

    @property
    def generation(self) -> int:
        now = self._member.generation
        return now.id if now else -1

    def wait(self, timeout_s: float) -> Leader | None:
        with self._changed:
            self._changed.wait_for(lambda: self._leader is not None, timeout_s)
            return self._leader

    def look(self) -> tuple[frozenset[Unit], bool]:
        with self._changed:
            lost, self._is_lost = self._is_lost, False
            return self._given, lost

    def share_out_if(self, changed: Callable[[frozenset[Unit]], bool]) -> None:
        if self.leads and changed(self._shared_out):
            self._shared_out = frozenset(self._units())
            self._member.rejoin()

    def rejoin(self) -> None:
        self._member.rejoin()

    def renew(self) -> None:
        """Lead anew: another writer was here meanwhile."""
        with self._changed:
            self._led, self._leader = False, None
        self._member.rejoin()

    def check(self) -> None:
        failure = self._member.failure
        if failure is None:
            return
        if isinstance(failure, ClientError) and failure.error is Error.INCONSISTENT_GROUP_PROTOCOL:
            raise ServeError(
                f"The group {self._group_id} has workers of Apache Connect, or of another release. "
                "Stop them first, or choose another group.id."
            )
        raise ServeError(f"This worker cannot be in the group {self._group_id}: {failure}")

    def _introduction(self) -> list[tuple[str, bytes]]:
        who = {"url": self._url, "owned": sorted(map(unit_key, self._owned())), "idle": self._is_idle}
        return [(PROTOCOL, json.dumps(who).encode())]

    def _assign(self, _: str, peers: Sequence[Peer]) -> dict[str, bytes]:
        who = {peer.id: json.loads(peer.metadata) for peer in peers}
        self._shared_out = frozenset(self._units())
        owned = {worker: one["owned"] for worker, one in who.items() if not one.get("idle")}
        made = dict.fromkeys(who, ()) | shared_out(self._shared_out, owned)
        told = {"leader": self._url, "key": base64.b64encode(secrets.token_bytes(32)).decode()}
        return {worker: json.dumps({**told, "units": list(units)}).encode() for worker, units in made.items()}

    def _assigned(self, generation: Generation) -> None:
        told = json.loads(generation.assignment or b'{"leader": null, "key": "", "units": []}')
        leads = generation.is_leader
        if leads and not self._led:
            try:
                self._before_leading()
            except ClientError as error:
                log.warning("this worker cannot lead yet: %s", error)
                self._member.rejoin()
                leads = False
        with self._changed:
            self._led = leads
            self._leader = Leader(told["leader"]) if told["leader"] and leads == generation.is_leader else None
            self.key = base64.b64decode(told["key"])
            self._given = frozenset(unit_of(text) for text in told["units"])
            self._changed.notify_all()
        self._wake()

    def _lost(self, _: Generation) -> None:
        with self._changed:
            self._given, self._is_lost, self._led, self._leader = frozenset(), True, False, None
        self._wake()


class Alone:
    """The group of a standalone worker, which has everything."""

    def __init__(self, url: str, units: Callable[[], Iterable[Unit]]) -> None:
        self.key = secrets.token_bytes(32)
        self.leads, self.leader, self.generation = True, Leader(url), 0
        self._units = units

    def wait(self, timeout_s: float) -> Leader | None:
        return self.leader

    def look(self) -> tuple[frozenset[Unit], bool]:
        return frozenset(self._units()), False

    def share_out_if(self, changed: Callable[[frozenset[Unit]], bool]) -> None: ...
    def rejoin(self) -> None: ...
    def renew(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


def shared_out(units: Iterable[Unit], owned: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the units of each worker: tasks shared out evenly, and connectors by themselves, as in Connect."""
    made: dict[str, tuple[str, ...]] = dict.fromkeys(owned, ())
    known = list(units)
    for is_task in (True, False):
        costs = {unit_key(unit): 1.0 for unit in known if (unit[1] is not None) is is_task}
        for worker, some in share_out(costs, owned).items():
            made[worker] += some
    return made


def unit_key(unit: Unit) -> str:
    return json.dumps(unit, ensure_ascii=False)


def unit_of(text: str) -> Unit:
    name, task = json.loads(text)
    return name, task

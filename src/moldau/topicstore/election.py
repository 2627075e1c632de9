"""Choose the writer of a store: its processes are members of a group, and the group agrees on one of them.

Each member tells the others who and where it is; the group's leader assigns to all of them the one that is to write.
The format is that of Confluent's Schema Registry, so that registries of both kinds can be in one group.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.client import Client, Generation, Member, Peer

log = logging.getLogger(__name__)

PROTOCOL = "v0"
IDENTITY_VERSION = 1
NO_ERROR, DUPLICATE_URLS = 0, 1


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that may write: where it listens, whether it may lead, and whether it does."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True
    leads: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def as_json(self) -> dict[str, Any]:
        return {
            "version": IDENTITY_VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "leader": self.leads,
        }

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Identity:
        return Identity(
            str(fields["host"]),
            int(fields["port"]),
            fields.get("scheme") or "http",
            bool(fields.get("master_eligibility", True)),
            bool(fields.get("leader", False)),
        )


def assign(_: str, peers: Sequence[Peer]) -> dict[str, bytes]:
    """Tell everybody who writes: the one that does already, otherwise the one whose URL sorts first."""
    known = {peer.id: Identity.of(json.loads(peer.metadata)) for peer in peers}
    urls = [identity.url for identity in known.values()]
    error = DUPLICATE_URLS if len(set(urls)) < len(urls) else NO_ERROR
    leader = None if error else choose(known)
    assignment = {
        "version": IDENTITY_VERSION,
        "error": error,
        "master": leader,
        "master_identity": known[leader].as_json() if leader else None,
    }
    data = json.dumps({name: value for name, value in assignment.items() if value is not None}).encode()
    return dict.fromkeys(known, data)


def choose(known: Mapping[str, Identity]) -> str | None:
    """Choose the member that writes, if any may."""
    eligible = {id: identity for id, identity in known.items() if identity.eligible}
    leading = [id for id, identity in eligible.items() if identity.leads]
    if len(leading) == 1:
        return leading[0]
    return min(eligible, key=lambda id: eligible[id].url, default=None)


class Election:
    """This process's place in a group of type `kind`.

    `before_leading` is called before this process becomes the writer, and says whether it can. With `sticky`, a writer
    stays the writer when others join.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        kind: str,
        identity: Identity,
        *,
        sticky: bool,
        before_leading: Callable[[], bool],
    ) -> None:
        self._identity, self._sticky, self._before_leading = identity, sticky, before_leading
        self._changed = threading.Condition()
        self._leader: Identity | None = None
        self._led = False
        self._member = Member(
            client, group, kind, self._protocols, assign, on_assigned=self._assigned, on_revoked=self._revoked
        )

    def start(self) -> None:
        self._member.start()

    def close(self) -> None:
        self._member.close()

    @property
    def leader(self) -> Identity | None:
        """The writer, as far as is known."""
        with self._changed:
            return self._leader

    @property
    def leads(self) -> bool:
        with self._changed:
            mine = self._leader is not None and self._leader.url == self._identity.url
        return mine and self._member.failure is None and self._member.generation is not None

    def wait(self, timeout_s: float) -> Identity | None:
        """Return the writer; wait for an election that is under way."""
        with self._changed:
            self._changed.wait_for(lambda: self._leader is not None, timeout_s)
            return self._leader

    def renew(self) -> None:
        """Join again, and take over again if chosen: another writer was here meanwhile."""
        with self._changed:
            self._led, self._leader = False, None
        self._member.rejoin()

    def _protocols(self) -> list[tuple[str, bytes]]:
        known = {**self._identity.as_json(), "leader": self._sticky and self._led}
        return [(PROTOCOL, json.dumps(known).encode())]

    def _assigned(self, generation: Generation) -> None:
        assignment = json.loads(generation.assignment) if generation.assignment else {}
        if assignment.get("error"):
            log.error("Two members say that they are at %s; give each a host.name.", self._identity.url)
        fields = assignment.get("master_identity")
        leader = Identity.of(fields) if fields else None
        mine = leader is not None and leader.url == self._identity.url
        if mine and not self._led and not self._before_leading():
            self._member.rejoin()  # somebody else may be able to
            mine, leader = False, None
        with self._changed:
            self._led, self._leader = mine, leader
            self._changed.notify_all()
        log.info("the leader is %s", leader.url if leader else "not known")

    def _revoked(self, _: Generation) -> None:
        with self._changed:
            self._leader = None

"""Membership in a group of any protocol type: join, get an assignment, send heartbeats, leave.

The caller decides what members exchange: each join carries bytes of metadata, the leader of the group turns them into
bytes of assignment for each member, and every member gets its own (KIP-62, KIP-345, KIP-394).

`poll` joins and runs the callbacks in the caller's thread. Heartbeats have their own thread, so a callback may take its
time. `start` polls in a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from moldau.client.client import Client
from moldau.client.errors import ClientError, error_of
from moldau.client.outcomes import outcomes
from moldau.client.targets import group as coordinator_of
from moldau.wire import messages
from moldau.wire.errors import Error

POLL_S = 1.0
CLOSE_S = 15.0
LEAVE_S = 2.0
# Errors after which a member joins again, and whether it needs a new member id.
REJOIN = {Error.REBALANCE_IN_PROGRESS: False, Error.ILLEGAL_GENERATION: False, Error.UNKNOWN_MEMBER_ID: True}


@dataclass(frozen=True, slots=True)
class Peer:
    """A member as its group's leader sees it."""

    id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Generation:
    """A round of the group: who this member is in it, who leads, and what this member was assigned."""

    id: int
    member_id: str
    leader_id: str
    protocol: str
    assignment: bytes

    @property
    def is_leader(self) -> bool:
        return self.member_id == self.leader_id


Protocols = Sequence[tuple[str, bytes]]
Assign = Callable[[str, Sequence[Peer]], Mapping[str, bytes]]


class Member:
    """A member of a group.

    `protocols` are names and metadata in order of preference, or a function that returns them for each join. The leader
    calls `assign`, which turns protocol and members into assignments by member id. `on_assigned` follows each join,
    `on_revoked` precedes the next one, and `on_lost` replaces it if the group went on without this member (without
    `on_lost`, `on_revoked` does for both). Timeouts are the client's settings.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        protocol_type: str,
        protocols: Protocols | Callable[[], Protocols],
        assign: Assign,
        *,
        on_assigned: Callable[[Generation], None] | None = None,
        on_revoked: Callable[[Generation], None] | None = None,
        on_lost: Callable[[Generation], None] | None = None,
        instance_id: str | None = None,
    ) -> None:
        self.group_id, self.protocol_type, self.instance_id = group_id, protocol_type, instance_id
        self.failure: Exception | None = None
        self._client = client.sibling()  # closing it ends a join that waits
        self._protocols, self._assign = protocols, assign
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost or on_revoked
        self._changed = threading.Condition()  # guards what follows
        self._member_id = ""
        self._generation: Generation | None = None
        self._rejoin = True
        self._requests = 0  # how often `rejoin` was called
        self._lost = False
        self._closed = False
        self._polled = time.monotonic()
        self._heartbeats: threading.Thread | None = None
        self._poller: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def generation(self) -> Generation | None:
        """Return the current round of this member; None between rounds."""
        with self._changed:
            return None if self._lost else self._generation

    def start(self) -> Self:
        """Poll in a thread until `close`, or until `failure` says why it ended. Callbacks run there."""
        self._poller = threading.Thread(target=self._run, name=f"member of {self.group_id}", daemon=True)
        self._poller.start()
        return self

    def rejoin(self) -> None:
        """Join again at the next poll, for example because the metadata has changed."""
        with self._changed:
            self._rejoin = True
            self._requests += 1
            self._changed.notify_all()

    def poll(self, timeout_s: float = 0.0) -> Generation | None:
        """Wait at most so long for a change in the group, take part in it, and return the round.

        A join itself takes as long as the other members need. ClientError if the group refuses this member.
        """
        with self._changed:
            self._polled = time.monotonic()
            self._changed.wait_for(lambda: self._rejoin or self._closed or self.failure, timeout_s)
            if self.failure:
                raise self.failure
            if self._closed or not self._rejoin:
                return self._generation
            before, lost = self._generation, self._lost
        if before is not None:
            self._tell(self._on_lost if lost else self._on_revoked, before)
            with self._changed:
                self._generation = None
        after = self._join()
        self._tell(self._on_assigned, after)
        return self.generation

    def close(self) -> None:
        """Leave the group; a member with an instance id stays in it, because it may come back."""
        with self._changed:
            closed, self._closed = self._closed, True
            self._changed.notify_all()
        if not closed:
            if self.instance_id is None:
                self._leave("the member was closed")
            self._client.close()
        for thread in (self._poller, self._heartbeats):
            if thread is not None and thread is not threading.current_thread():
                thread.join(CLOSE_S)

    @staticmethod
    def _tell(callback: Callable[[Generation], None] | None, generation: Generation) -> None:
        if callback is not None:
            callback(generation)

    def _run(self) -> None:
        while not self._closed:
            try:
                self.poll(POLL_S)
            except ClientError as error:
                if not error.retriable:
                    self._fail(error)
                    return
                self._wait("retry.backoff.max.ms")
            except Exception as error:  # of a callback
                self._fail(error)
                raise

    def _wait(self, setting: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, self._client.config.seconds(setting))

    def _fail(self, error: Exception) -> None:
        with self._changed:
            if not self._closed:
                self.failure = error
            self._changed.notify_all()

    def _join(self) -> Generation:
        """Join and sync until both succeed in one round."""
        while True:
            with self._changed:
                requests = self._requests
            answer = self._ask(self._join_request())
            if answer.error_code == Error.MEMBER_ID_REQUIRED:
                self._member_id = answer.member_id
                continue
            if not self._is_refused(answer):
                self._member_id = answer.member_id
                synced = self._ask(self._sync_request(answer))
                if not self._is_refused(synced):
                    return self._enter(answer, bytes(synced.assignment), requests)
            self._wait("retry.backoff.ms")

    def _join_request(self) -> Any:
        config = self._client.config
        given = self._protocols() if callable(self._protocols) else self._protocols
        protocols = [messages.JoinGroupRequest_JoinGroupRequestProtocol(name, metadata) for name, metadata in given]
        return messages.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=config["session.timeout.ms"],
            rebalance_timeout_ms=config["max.poll.interval.ms"],
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=protocols,
        )

    def _sync_request(self, joined: Any) -> Any:
        made: Mapping[str, bytes] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            peers = [Peer(row.member_id, row.group_instance_id, bytes(row.metadata)) for row in joined.members]
            made = self._assign(joined.protocol_name, peers)
        return messages.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=[messages.SyncGroupRequest_SyncGroupRequestAssignment(*pair) for pair in made.items()],
        )

    def _enter(self, joined: Any, assignment: bytes, requests: int) -> Generation:
        """Take part in a round. Whoever called `rejoin` since its metadata was written has something new to say."""
        generation = Generation(joined.generation_id, joined.member_id, joined.leader, joined.protocol_name, assignment)
        with self._changed:
            self._generation, self._rejoin, self._lost = generation, self._requests != requests, False
            self._member_id, self._polled = joined.member_id, time.monotonic()
            if self._heartbeats is None:
                name = f"heartbeats to {self.group_id}"
                self._heartbeats = threading.Thread(target=self._beat, name=name, daemon=True)
                self._heartbeats.start()
            self._changed.notify_all()
        return generation

    def _is_refused(self, answer: Any) -> bool:
        """Tell whether to join again; ClientError if that would not help."""
        error = error_of(answer.error_code)
        if error is Error.NONE:
            return False
        if error not in REJOIN:
            raise ClientError(error, f"Group {self.group_id} refuses this member: {error.message}", answer=answer)
        if REJOIN[error]:
            self._member_id = ""
        return True

    def _ask(self, request: Any, timeout_s: float | None = None) -> Any:
        return self._client.send(request, coordinator_of(self.group_id), timeout_s=timeout_s)

    def _beat(self) -> None:
        """Send heartbeats in a thread. It only notes what the group says; `poll` acts on it."""
        config = self._client.config
        interval_s, session_s = config.seconds("heartbeat.interval.ms"), config.seconds("session.timeout.ms")
        alive = time.monotonic()
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, interval_s)
                generation = None if self._lost else self._generation
                idle_s = time.monotonic() - self._polled
            if generation is None or self._closed:
                alive = time.monotonic()
            elif idle_s > config.seconds("max.poll.interval.ms"):
                self._leave("it was not polled for max.poll.interval.ms")
                self._note(generation, lost=True)
            else:
                alive = self._beat_once(generation, alive, session_s)

    def _beat_once(self, generation: Generation, alive: float, session_s: float) -> float:
        """Send one heartbeat; return when the group last knew that this member is alive."""
        request = messages.HeartbeatRequest(self.group_id, generation.id, generation.member_id, self.instance_id)
        try:
            answer = self._ask(request, session_s)
        except ClientError as error:
            if not error.retriable:
                self._fail(error)
            elif time.monotonic() - alive > session_s:
                self._note(generation, lost=True)
            return alive
        [(error, _, _)] = outcomes(answer)
        if error in REJOIN:
            self._note(generation, lost=error is not Error.REBALANCE_IN_PROGRESS, nobody=REJOIN[error])
        elif error and not error.retriable:
            self._fail(ClientError(error, f"Group {self.group_id} refuses this member: {error.message}"))
        return alive if error else time.monotonic()

    def _note(self, generation: Generation, *, lost: bool, nobody: bool = False) -> None:
        with self._changed:
            if self._generation is not generation:
                return  # it is about a round that is over
            self._rejoin, self._lost = True, self._lost or lost
            if nobody:
                self._member_id = ""
            self._changed.notify_all()

    def _leave(self, reason: str) -> None:
        with self._changed:
            member_id, self._member_id = self._member_id, ""
        if not member_id:
            return
        row = messages.LeaveGroupRequest_MemberIdentity(member_id, self.instance_id, reason)
        try:
            self._ask(messages.LeaveGroupRequest(self.group_id, members=[row]), LEAVE_S)
        except ClientError:
            return  # the session will run out

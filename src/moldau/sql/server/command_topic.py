"""The command topic: statements in one order for all servers of a service."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from moldau.admin.topics import NewTopic
from moldau.client import Client, ClientError, Record, build
from moldau.sql.server.commands import TOO_LATE, Command, Executed
from moldau.sql.server.errors import NOT_CAUGHT_UP, NOT_READY, ServerError
from moldau.topicstore import Follower, Reader, StoreError, append
from moldau.topicstore.reader import LATEST, offset_of
from moldau.topicstore.store import Replayed
from moldau.topicstore.topic import create, exists

log = logging.getLogger(__name__)
KEPT = 1_000  # outcomes of commands that are remembered for those who wait for them
FOREVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


def topic_name(service_id: str) -> str:
    return f"_confluent-ksql-{service_id}_command_topic"


class CommandTopic:
    """Appends commands and executes all of them, those of other servers too, in the order of the topic."""

    def __init__(
        self,
        client: Client,
        service_id: str,
        replicas: int,
        execute: Callable[[int, Command], Executed],
        timeout_s: float = 30.0,
    ) -> None:
        self.topic, self._execute, self._timeout_s = topic_name(service_id), execute, timeout_s
        if not exists(client, self.topic):
            create(client, NewTopic(self.topic, 1, replicas, FOREVER))
        self._client = client
        self._outcomes: dict[int, Executed] = {}
        self._turn = threading.Lock()
        self._reader = Reader(client.sibling(), self.topic, self._open, partitions=lambda: (0,))
        self._follower = Follower(self._reader, patient=True)

    def start(self) -> None:
        """Execute all commands that are there; StoreError if that cannot be done in time."""
        self._follower.start()
        if not self._follower.wait_until(lambda: any(s.loaded for s in self._reader.states.values()), self._timeout_s):
            raise StoreError(f"Topic {self.topic} could not be read to its end within {self._timeout_s:.0f} s.")

    def close(self) -> None:
        self._follower.close()
        self._follower.join()

    def _open(self, partition: int, start: int) -> Replayed:
        return Replayed(start, self._replay)

    def _replay(self, record: Record) -> None:
        try:
            command = Command.of(record.key, record.value)
        except ValueError as error:
            log.warning("Record %d of %s is not a command: %s", record.offset, self.topic, error)
            return
        outcome = self._execute(record.offset, command)
        if outcome.error is not None:
            log.warning("Command %d (%s) was refused: %s", record.offset, command.id, outcome.message)
        self._outcomes[record.offset] = outcome
        while len(self._outcomes) > KEPT:
            del self._outcomes[next(iter(self._outcomes))]

    def catch_up(self) -> None:
        try:
            end = offset_of(self._client, self.topic, 0, LATEST)
        except ClientError as error:
            raise ServerError(NOT_READY, f"{self.topic} cannot be read: {error}") from None
        if not self._reached(end):
            raise ServerError(NOT_READY, f"The statements of other servers were not read within {self._timeout_s} s.")

    def reach(self, number: int) -> None:
        if not self._reached(number + 1):
            raise ServerError(NOT_CAUGHT_UP, TOO_LATE.format(number))

    def _reached(self, position: int) -> bool:
        states = self._reader.states
        return self._follower.wait_until(lambda: any(s.position >= position for s in states.values()), self._timeout_s)

    def submit(self, command: Command) -> Executed:
        row = Record(0, time.time_ns() // 1_000_000, command.key(), command.value())
        try:
            offset, _ = append(self._client, self.topic, 0, build([row]))
        except ClientError as error:
            raise ServerError(NOT_READY, f"The statement could not be written to {self.topic}: {error}") from None
        if not self._follower.wait_until(lambda: offset in self._outcomes, self._timeout_s):
            raise ServerError(
                NOT_READY, f"The statement is written to {self.topic}, but was not executed within {self._timeout_s} s."
            )
        return self._outcomes[offset]

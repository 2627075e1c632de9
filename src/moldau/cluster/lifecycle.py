"""A broker's life under a controller: it registers, catches up, is unfenced, sends heartbeats, and leaves in order.

Registering gives it an epoch. While it has not seen its own registration in the metadata it stays fenced: nobody is
sent to it. When it is told to stop it says so with each heartbeat until the controller has given its partitions to
others; that is a controlled shutdown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Any, NamedTuple

from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_EPOCH = -1


class State(Enum):
    """Where in its life a broker is."""

    REGISTERING = "registering"
    FENCED = "fenced"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Limits(NamedTuple):
    """Settings, in Kafka's names."""

    heartbeat_ms: int  # broker.heartbeat.interval.ms
    registration_ms: int  # initial.broker.registration.timeout.ms
    retry_ms: int = 100
    stopping_ms: int = 50  # between heartbeats of a broker that wants to stop


class CannotJoin(Exception):
    """The controllers do not take this broker. The text is a sentence."""


@dataclass(slots=True)
class Lifecycle:
    """One process of a broker."""

    broker_id: int
    limits: Limits
    began_ms: float
    registration: Callable[[], Any]  # the request, with what is known when it is sent
    epoch: int = NO_EPOCH
    state: State = State.REGISTERING
    ready_ms: float = 0.0
    is_busy: bool = False
    is_hurried: bool = False  # there is something to tell that the request under way does not say
    last_error: Error = Error.NONE
    on_change: Callable[[State], None] = field(default=lambda state: None)

    # What to ask.

    def next_ms(self) -> float:
        return inf if self.is_busy or self.state is State.STOPPED else self.ready_ms

    def request(
        self,
        now_ms: float,
        metadata_offset: int,
        offline_dirs: list[bytes],
        *,
        want_fence: bool,
        cordoned_dirs: list[bytes] | None = None,
    ) -> Any:
        """Return the registration or the heartbeat that is due, or None.

        `want_fence`: this broker is not ready to serve yet. `cordoned_dirs`: they get no new replicas.
        """
        if now_ms < self.next_ms():
            return None
        self.is_busy = True
        if self.state is State.REGISTERING:
            return self.registration()
        return m.BrokerHeartbeatRequest(
            broker_id=self.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=metadata_offset,
            want_fence=want_fence,
            want_shut_down=self.state is State.STOPPING,
            offline_log_dirs=offline_dirs,
            cordoned_log_dirs=cordoned_dirs,
        )

    def stop(self) -> None:
        """Begin a controlled shutdown; a broker that was never unfenced has nothing to hand over."""
        self._become(State.STOPPING if self.state is State.RUNNING else State.STOPPED)
        self.ready_ms = 0.0

    def hurry(self) -> None:
        """Send the next heartbeat now: there is something to tell."""
        self.ready_ms, self.is_hurried = 0.0, self.is_busy

    # What comes of it.

    def fail(self, now_ms: float) -> None:
        """There was no answer, or no controller to ask."""
        self._retry(now_ms, Error.NONE)

    def heard(self, response: Any, now_ms: float) -> None:
        """Take over an answer; raises CannotJoin when the time to register is over.

        One that comes after the end changes nothing: it is about a life that is over, and may be to a registration.
        """
        if self.state is State.STOPPED:
            return
        error = Error(response.error_code)
        if error:
            self._retry(now_ms, error)
            return
        self.is_busy, self.last_error = False, error
        if self.state is State.REGISTERING:
            self.epoch = response.broker_epoch
            self.ready_ms = now_ms
            self._become(State.FENCED)
        elif self.state is State.STOPPING:
            self.ready_ms = now_ms + self.limits.stopping_ms
            if response.should_shut_down:
                self._become(State.STOPPED)
        else:
            soon = response.is_fenced
            pause_ms = self.limits.retry_ms if soon else self.limits.heartbeat_ms
            self.ready_ms = now_ms if self.is_hurried else now_ms + pause_ms
            self.is_hurried = False
            self._become(State.FENCED if response.is_fenced else State.RUNNING)

    def _retry(self, now_ms: float, error: Error) -> None:
        self.is_busy, self.last_error = False, error or self.last_error
        self.ready_ms = now_ms + self.limits.retry_ms
        self.check_time(now_ms)

    def check_time(self, now_ms: float) -> None:
        """Raise CannotJoin when the time to register is over."""
        if self.state is State.REGISTERING and now_ms - self.began_ms > self.limits.registration_ms:
            why = self.last_error.message if self.last_error else "No controller has answered."
            raise CannotJoin(f"Broker {self.broker_id} cannot join the cluster: {why}")

    def _become(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            self.on_change(state)

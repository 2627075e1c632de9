"""A broker's life: it registers, is fenced until it is ready, runs, and leaves when the controller lets it."""

from __future__ import annotations

import pytest

from moldau.cluster.lifecycle import CannotJoin, Lifecycle, Limits, State
from moldau.wire import messages as m
from moldau.wire.errors import Error

LIMITS = Limits(heartbeat_ms=2000, registration_ms=60_000)


def newcomer() -> Lifecycle:
    return Lifecycle(7, LIMITS, 0.0, lambda: m.BrokerRegistrationRequest(broker_id=7))


def ask(life: Lifecycle, now: float, *, want_fence: bool = False):
    return life.request(now, 100, [], want_fence=want_fence)


def running() -> Lifecycle:
    life = newcomer()
    ask(life, 0)
    life.heard(m.BrokerRegistrationResponse(broker_epoch=42), 1)
    ask(life, 1)
    life.heard(m.BrokerHeartbeatResponse(is_fenced=False), 2)
    return life


def test_it_registers_and_is_unfenced():
    life = newcomer()
    assert ask(life, 0).SCHEMA.name == "BrokerRegistrationRequest"
    assert ask(life, 0) is None, "one request at a time"
    life.heard(m.BrokerRegistrationResponse(broker_epoch=42), 1)
    assert (life.epoch, life.state) == (42, State.FENCED)
    beat = ask(life, 1, want_fence=True)
    assert (beat.broker_epoch, beat.current_metadata_offset, beat.want_fence) == (42, 100, True)
    life.heard(m.BrokerHeartbeatResponse(is_fenced=True), 2)
    assert life.state is State.FENCED and life.next_ms() < 2 + LIMITS.heartbeat_ms
    ask(life, life.next_ms())
    life.heard(m.BrokerHeartbeatResponse(is_fenced=False), 300)
    assert life.state is State.RUNNING and life.next_ms() == 300 + LIMITS.heartbeat_ms


def test_a_controller_that_says_no_is_asked_again_until_the_time_is_over():
    life = newcomer()
    refusal = m.BrokerRegistrationResponse(error_code=Error.DUPLICATE_BROKER_REGISTRATION)
    ask(life, 0)
    life.heard(refusal, 1)
    assert life.state is State.REGISTERING and ask(life, life.next_ms()) is not None
    with pytest.raises(CannotJoin, match="Broker 7 cannot join"):
        life.heard(refusal, 60_001)


def test_a_lost_heartbeat_is_sent_again_soon():
    life = running()
    ask(life, life.next_ms())
    life.fail(5000)
    assert life.state is State.RUNNING and life.next_ms() == 5000 + LIMITS.retry_ms


def test_a_broker_in_a_hurry_does_not_wait_after_the_heartbeat_under_way():
    life = running()
    assert ask(life, life.next_ms()) is not None
    life.hurry()
    assert ask(life, 5000) is None, "one request at a time"
    life.heard(m.BrokerHeartbeatResponse(is_fenced=False), 5001)
    assert ask(life, 5001) is not None
    life.heard(m.BrokerHeartbeatResponse(is_fenced=False), 5002)
    assert life.next_ms() == 5002 + LIMITS.heartbeat_ms


def test_it_stops_when_the_controller_lets_it():
    life = running()
    life.stop()
    assert ask(life, 10).want_shut_down
    life.heard(m.BrokerHeartbeatResponse(is_fenced=False), 11)
    assert life.state is State.STOPPING
    assert ask(life, life.next_ms()).want_shut_down
    life.heard(m.BrokerHeartbeatResponse(should_shut_down=True), 80)
    assert life.state is State.STOPPED and ask(life, 10**9) is None


def test_one_that_was_never_let_in_stops_at_once():
    life = newcomer()
    life.stop()
    assert life.state is State.STOPPED


@pytest.mark.parametrize("let_in", [False, True])
def test_an_answer_that_comes_after_the_end_changes_nothing(let_in):
    life = newcomer()
    ask(life, 0)
    late = m.BrokerRegistrationResponse(broker_epoch=42)
    if let_in:
        life.heard(late, 1)
        ask(life, 1)
        late = m.BrokerHeartbeatResponse(is_fenced=False)
    life.stop()
    life.heard(late, 2)
    assert life.state is State.STOPPED and ask(life, 10**9) is None

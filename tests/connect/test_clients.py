"""Settings of the Kafka clients that a worker makes."""

from __future__ import annotations

from moldau.connect import clients


def consumer(worker: dict[str, str], **connector: str) -> dict[str, str]:
    given = {f"consumer.override.{name.replace('_', '.')}": text for name, text in connector.items()}
    return clients.consumer({"bootstrap.servers": "b:1", "group.id": "w", **worker}, given, "c", "connect-x")


def test_a_sink_misses_a_dead_member_as_soon_as_its_worker() -> None:
    assert consumer({})["session.timeout.ms"] == "10000"
    assert consumer({"session.timeout.ms": "6000"})["session.timeout.ms"] == "6000"
    assert consumer({"heartbeat.interval.ms": "500"})["heartbeat.interval.ms"] == "500"


def test_settings_of_a_connector_win() -> None:
    assert consumer({"session.timeout.ms": "6000"}, session_timeout_ms="20000")["session.timeout.ms"] == "20000"
    assert consumer({"consumer.session.timeout.ms": "7000"})["session.timeout.ms"] == "7000"


def test_members_of_the_new_protocol_have_no_time_of_their_own() -> None:
    found = consumer({}, group_protocol="consumer")
    assert "session.timeout.ms" not in found and "heartbeat.interval.ms" not in found


def test_the_group_of_workers_is_not_that_of_a_sink() -> None:
    assert consumer({})["group.id"] == "connect-x"

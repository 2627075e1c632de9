"""How many connections a broker, a listener and an address may have, and how many new ones a second."""

from __future__ import annotations

import pytest

from tests.broker.test_server import frame, running


def test_more_connections_than_allowed_wait_for_their_turn() -> None:
    with running(max_connections="2") as rim:
        first, second, third = rim.connect(), rim.connect(), rim.connect()
        for client in (first, second):
            client.send(frame(1))
            assert client.read() == frame(1)
        third.send(frame(3))
        assert len(rim.server.channels) == 2
        first.sock.close()
        assert third.read() == frame(3)
        second.sock.close()
        third.sock.close()


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    with running(listener_name_plaintext_max_connections="1") as rim:
        first, second, third = rim.connect(), rim.connect(), rim.connect()
        first.send(frame(1))
        assert first.read() == frame(1)
        second.send(frame(2))
        third.send(frame(3))
        assert len(rim.server.channels) == 1
        first.sock.close()
        assert second.read() == frame(2)
        second.sock.close()
        assert third.read() == frame(3)
        third.sock.close()


@pytest.mark.parametrize(
    "name", ["max_connection_creation_rate", "listener_name_plaintext_max_connection_creation_rate"]
)
def test_new_connections_above_their_rate_wait_for_their_turn(name: str) -> None:
    windows = {"quota_window_num": "2", "quota_window_size_seconds": "1"}
    with running(**{name: "5"}, **windows) as rim:
        clients = [rim.connect() for _ in range(12)]
        for number, client in enumerate(clients):
            client.send(frame(number))
        assert [client.read() for client in clients] == [frame(number) for number in range(12)]
        assert rim.server.counters.refused["max.connection.creation.rate"]
        for client in clients:
            client.sock.close()


def test_one_address_gets_no_more_connections_than_allowed() -> None:
    with running(max_connections_per_ip="1") as rim, rim.connect() as first:
        first.send(frame(1))
        assert first.read() == frame(1)
        with rim.connect() as second:
            assert second.is_closed()
        first.sock.close()
        rim.eventually(lambda: not rim.server.channels)
        with rim.connect() as third:
            third.send(frame(3))
            assert third.read() == frame(3)


def test_an_address_may_have_a_limit_of_its_own() -> None:
    limits = {"max_connections_per_ip": "1", "max_connections_per_ip_overrides": "127.0.0.1:2,10.0.0.1:7"}
    with running(**limits) as rim, rim.connect() as first, rim.connect() as second, rim.connect() as third:
        for client in (first, second):
            client.send(frame(1))
            assert client.read() == frame(1)
        assert third.is_closed()

"""Listeners: what is bound, and what clients are told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moldau.broker.rim.listeners import Listener, ListenError, join, open_listeners, own_name, split
from moldau.settings import SettingError, Settings
from moldau.testing.ports import free_port


@contextmanager
def opened(listeners: str | None = None, advertised: str | None = None, **more: str) -> Iterator[list[Listener]]:
    pairs = {"listeners": listeners, "advertised.listeners": advertised, **more}
    found = open_listeners(Settings.load({key: value for key, value in pairs.items() if value is not None}))
    try:
        yield found
    finally:
        for listener in found:
            listener.socket.close()


def test_any_port_is_told_as_the_real_one() -> None:
    with opened("PLAINTEXT://127.0.0.1:0") as (one,):
        assert one.port == one.socket.getsockname()[1] != 0
        assert (one.advertised_host, one.advertised_port) == ("127.0.0.1", one.port)
        assert one.advertised == f"PLAINTEXT://127.0.0.1:{one.port}"


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", ""])
def test_a_wildcard_is_never_told(host: str) -> None:
    with opened(f"PLAINTEXT://{host}:0") as (one,):
        assert one.advertised_host == own_name()


def test_a_wildcard_cannot_be_advertised() -> None:
    with pytest.raises(SettingError, match="wildcard"), opened("PLAINTEXT://:0", "PLAINTEXT://0.0.0.0:9092"):
        pass


def test_an_advertised_listener_must_exist() -> None:
    with pytest.raises(SettingError, match="no EXTERNAL"), opened("PLAINTEXT://:0", "EXTERNAL://here:9092", **MAP):
        pass


MAP = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECRET:SSL"}


def test_named_listeners_have_addresses_of_their_own() -> None:
    with opened("INSIDE://127.0.0.1:0,EXTERNAL://127.0.0.1:0", "EXTERNAL://example.org:19092", **MAP) as (one, two):
        assert one.advertised == f"INSIDE://127.0.0.1:{one.port}"
        assert two.advertised == "EXTERNAL://example.org:19092"


def test_an_ipv6_address_is_written_in_brackets() -> None:
    with opened("PLAINTEXT://[::1]:0") as (one,):
        assert one.address == f"[::1]:{one.port}"
        assert one.socket.family == socket.AF_INET6
    assert split("[::1]:9092") == ("::1", 9092)
    assert join(*split("localhost:9092")) == "localhost:9092"


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x", "localhost:70000", "::1:9092"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SettingError, match="HOST:PORT"):
        split(address)


def test_a_taken_port_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"PLAINTEXT://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ListenError, match="the port is taken"), opened(address):
            pass


def test_an_unknown_host_is_told() -> None:
    with pytest.raises(ListenError, match="host is unknown"), opened("PLAINTEXT://no.such.host.invalid:0"):
        pass


def test_a_protocol_that_does_not_exist_is_refused() -> None:
    given = {"listener.security.protocol.map": "SECRET:QUANTUM"}
    with (
        pytest.raises(SettingError, match="QUANTUM is not a security protocol"),
        opened("SECRET://127.0.0.1:0", **given),
    ):
        pass


def test_all_listeners_are_opened_or_none() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(ListenError), opened(f"INSIDE://127.0.0.1:{port},EXTERNAL://127.0.0.1:{taken}", **MAP):
            pass
        socket.create_server(("127.0.0.1", port)).close()

"""The client's settings: names, types, other names, and refusals that help."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from moldau import settings
from moldau.client.config import Address, Config
from moldau.settings import CLIENT, SettingError, rows

SERVERS = {"bootstrap.servers": "here:1"}
NOT_LIBRDKAFKAS = {
    "bootstrap.controllers",
    "default.api.timeout.ms",
    "sasl.scram.tokenauth",
    "ssl.truststore.location",
    "ssl.truststore.password",
}
NEED_A_VALUE = {"sasl.mechanism": "PLAIN", "sasl.password": "p", "ssl.key.password": "p", "ssl.keystore.password": "p"}
READ_AT_ONCE = {"ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "ssl.cipher.suites"}


def refusal(**given: Any) -> str:
    with pytest.raises(SettingError) as caught:
        Config({**SERVERS, **{name.replace("_", "."): value for name, value in given.items()}})
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(set(rows(CLIENT)) - NOT_LIBRDKAFKAS - READ_AT_ONCE))
def test_every_name_is_one_of_librdkafkas(name: str) -> None:
    value = NEED_A_VALUE.get(name) or rows(CLIENT)[name].default
    confluent_kafka.Consumer({"group.id": "g", name: value}).close()


def test_a_name_is_either_of_use_or_not() -> None:
    assert not settings.client_inert_names() & set(rows(CLIENT))


def test_other_names_for_the_same_setting_are_taken() -> None:
    config = Config({"metadata.broker.list": "a:1", "message.send.max.retries": 3, "request.required.acks": "all"})
    assert (config.bootstrap, config["retries"], config["acks"]) == ((Address("a", 1),), 3, -1)


def test_a_setting_under_two_names_is_refused() -> None:
    assert "another name for retries" in refusal(**{"retries": 1, "message.send.max.retries": 2})


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    assert refusal(**{"socket.timeout.m": 1}).endswith("Did you mean socket.timeout.ms?")
    assert "there is no such setting" in refusal(nonsense=1)


def test_names_that_only_librdkafka_uses_are_let_pass() -> None:
    assert Config({**SERVERS, "linger.ms": 5, "debug": "all"}).ignored == ("linger.ms", "debug")


def test_values_are_typed_whatever_they_come_as() -> None:
    config = Config({**SERVERS, "socket.timeout.ms": "2000", "socket.keepalive.enable": True, "client.id": None})
    assert config.seconds("socket.timeout.ms") == 2.0
    assert config["socket.keepalive.enable"] is True
    assert config["client.id"] == "moldau"


def test_a_wrong_value_is_refused_by_name() -> None:
    assert "socket.timeout.ms cannot be '1'" in refusal(socket_timeout_ms=1)
    assert "security.protocol cannot be 'tls'" in refusal(security_protocol="tls")


def test_protocols_and_mechanisms_are_taken_in_any_case() -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "scram-sha-256", "sasl.username": "u"}
    config = Config({**SERVERS, **given, "sasl.password": "p"})
    assert (config.uses_tls, config.uses_sasl, config["sasl.mechanism"]) == (True, True, "SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "sasl.mechanism: it must be set"),
        ({"sasl.mechanism": "NTLM"}, "sasl.mechanism cannot be 'NTLM'"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, "needs sasl.username and sasl.password"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "needs a function that gives tokens"),
    ],
)
def test_authentication_without_what_it_needs_is_refused(given: dict[str, str], words: str) -> None:
    assert words in refusal(**{"security.protocol": "sasl_plaintext", **given})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [("a", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
        ("[::1]:5", [("::1", 5)]),
    ],
)
def test_brokers_are_written_as_librdkafka_writes_them(text: str, expected: list[tuple[str, int]]) -> None:
    assert list(Config({"bootstrap.servers": text}).bootstrap) == expected


@pytest.mark.parametrize("text", ["", " , ", "a:b", "a:70000", "a b", "::1", "a:0"])
def test_brokers_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"bootstrap\.servers"):
        Config({"bootstrap.servers": text})

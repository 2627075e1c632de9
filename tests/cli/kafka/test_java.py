"""What Kafka's tools owe to Java: order, numbers, settings and the names of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cli.kafka import java_order
from moldau.cli.kafka.deserializers import KNOWN, Undecodable, deserializer
from moldau.cli.kafka.exceptions import class_name, spoken
from moldau.cli.kafka.java_text import bytes_text, double_text, float_text
from moldau.client import Error
from moldau.client.java_settings import read_file, translated
from moldau.settings import SettingError
from moldau.wire.numbers import java_hash
from tests.cli.running import QUICK

KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"


def test_strings_hash_as_in_java() -> None:
    assert java_hash("") == 0 and java_hash("abc") == 96354
    assert java_hash("polygenelubricants") == 1 << 31
    assert java_order.partition_hash(("orders", 2)) == (31 * 33 + java_hash("orders")) & 0xFFFFFFFF


def test_a_map_gives_its_keys_by_bucket() -> None:
    assert java_order.names(["version", "brokers"]) == ["brokers", "version"]
    assert java_order.names(["partition", "size", "offsetLag", "isFuture"]) == [
        "partition",
        "size",
        "offsetLag",
        "isFuture",
    ]


@QUICK
@given(st.lists(st.text(max_size=8), unique=True, max_size=60))
def test_no_key_is_lost_in_order(keys: list[str]) -> None:
    assert sorted(java_order.names(keys)) == sorted(keys)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1000.0, "1000.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (12.5, "12.5"),
        (-1.5e300, "-1.5E300"),
        (123456789.0, "1.23456789E8"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


@QUICK
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_the_number_that_it_was(value: float) -> None:
    assert float(double_text(value)) == value


def test_floats_have_the_digits_of_32_bits() -> None:
    assert KNOWN["Float"](b"\x3d\xcc\xcc\xcd") == b"0.1" and float_text(3.0) == "3.0"
    assert bytes_text(b"a\\\x00\xff") == "a\\x5C\\x00\\xFF"


def test_deserializers_go_by_their_classes() -> None:
    assert deserializer("org.apache.kafka.common.serialization.IntegerDeserializer") is KNOWN["Integer"]
    assert deserializer("com.example.Mine") is None
    assert KNOWN["Boolean"](b"\x01") == b"true" and KNOWN["Short"](b"\xff\xff") == b"-1"
    with pytest.raises(Undecodable, match="Size of data received by IntegerDeserializer is not 4"):
        KNOWN["Integer"](b"1")


def test_errors_have_the_names_of_kafkas_classes() -> None:
    package = "org.apache.kafka.common.errors."
    assert class_name(Error.UNKNOWN_TOPIC_OR_PARTITION) == f"{package}UnknownTopicOrPartitionException"
    assert class_name(Error.NON_EMPTY_GROUP) == f"{package}GroupNotEmptyException"
    assert spoken(Error.NON_EMPTY_GROUP) == f"{package}GroupNotEmptyException: The group is not empty."


PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="a\\"b c" ;'


def test_settings_of_java_clients_have_other_names_here() -> None:
    assert translated({"fetch.max.wait.ms": "7", "sasl.jaas.config": PLAIN, "key.serializer": "x"}) == {
        "fetch.wait.max.ms": "7",
        "sasl.username": "ada",
        "sasl.password": 'a"b c',
    }
    assert translated({"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"}) == {
        "ssl.ca.location": "ca.pem"
    }
    keys = translated({"ssl.keystore.location": "me.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "x"})
    expected = {"ssl.certificate.location": "me.pem", "ssl.key.location": "me.pem", "ssl.key.password": "x"}
    assert keys == expected
    jks = {"ssl.truststore.location": "trust.jks", "ssl.truststore.password": "x"}
    assert translated(jks) == jks
    token = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="id" password="h" tokenauth="true";'
    )
    assert translated({"sasl.jaas.config": token})["sasl.scram.tokenauth"] == "true"
    keytab = f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="ada@R";'
    assert translated({"sasl.jaas.config": keytab, "sasl.kerberos.service.name": "broker"}) == {
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "ada@R",
        "sasl.kerberos.service.name": "broker",
    }
    assert translated({"sasl.jaas.config": f"{KERBEROS} required useTicketCache=true;"}) == {}
    assert translated({"ssl.endpoint.identification.algorithm": ""}) == {
        "ssl.endpoint.identification.algorithm": "none"
    }
    range_ = "org.apache.kafka.clients.consumer.RangeAssignor"
    assert translated({"partition.assignment.strategy": range_}) == {"partition.assignment.strategy": "range"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sasl.jaas.config", f"{KERBEROS} required ticketCache=x;", "set KRB5CCNAME"),
        ("sasl.jaas.config", f"{KERBEROS} required useKeyTab=true;", "needs keyTab and principal"),
        ("sasl.jaas.config", "nonsense", "it is written"),
        ("sasl.login.callback.handler.class", "com.example.Mine", "Java classes cannot run here"),
    ],
)
def test_what_only_a_jvm_can_use_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        translated({name: value})


def test_a_file_of_settings_is_javas(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# mine\nsecurity.protocol = SASL_SSL\nclient.id=a\\u0062\n")
    assert read_file(str(file)) == {"security.protocol": "SASL_SSL", "client.id": "ab"}

"""A real broker with a listener of each kind: who comes in, as whom, and what happens to those who do not."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from moldau.client import CONTROLLER, Client, ClientError, check
from moldau.testing.process import Broker
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.authentication.secured import LISTENERS, USERS, Secured

TOPIC = "guarded"
WAYS = [
    (protocol, mechanism)
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
]
READ, WRITE, DESCRIBE = 3, 4, 8
ALLOW, LITERAL, TOPICS = 3, 3, 2


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured = Secured(Path(tmp_path_factory.mktemp("secured")))
    more = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    audit = str(secured.folder / "audit.log")
    broker = Broker(secured.broker(super_users="User:admin", moldau_audit_file=audit, **more))
    broker.start()
    try:
        set_up(secured)
        yield secured
        broker.stop()
        lines = [json.loads(line) for line in Path(audit).read_text().splitlines()]
        assert {"denied", "failed to log in", "asked for a change"} <= {line["message"] for line in lines}
        refused = next(line for line in lines if line["message"] == "denied")
        assert (refused["operation"], refused["resource"], refused["name"]) == ("DESCRIBE", "TOPIC", TOPIC)
        for secret in (*USERS.values(), "shared by all brokers"):
            assert secret not in broker.log and secret not in Path(audit).read_text()
    finally:
        broker.kill()


def admin(secured: Secured) -> Client:
    return Client(secured.client("SASL_SSL", "PLAIN", "admin"))


def set_up(secured: Secured) -> None:
    with admin(secured) as client:
        for number, algorithm in ((1, "sha256"), (2, "sha512")):
            rows = [
                m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(
                    user, number, 4096, b"salt", hashlib.pbkdf2_hmac(algorithm, password.encode(), b"salt", 4096)
                )
                for user, password in USERS.items()
            ]
            check(client.send(m.AlterUserScramCredentialsRequest(upsertions=rows), CONTROLLER))
        check(client.send(m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(TOPIC, 1, 1)]), CONTROLLER))
        entry = m.CreateAclsRequest_AclCreation
        for user in ("alice", "client"):
            rows = [entry(TOPICS, TOPIC, LITERAL, f"User:{user}", "*", one, ALLOW) for one in (READ, WRITE)]
            check(client.send(m.CreateAclsRequest(rows), CONTROLLER))


def error_of_topic(settings: dict[str, Any]) -> Error:
    """What a client is told of the guarded topic."""
    with Client(settings) as client:
        request = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=TOPIC)])
        return Error(client.send(request, timeout_s=30).topics[0].error_code)


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_a_user_comes_in_and_the_acls_know_the_name(secured: Secured, protocol: str, mechanism: str) -> None:
    assert error_of_topic(secured.client(protocol, mechanism, "alice")) is Error.NONE
    assert error_of_topic(secured.client(protocol, mechanism, "bob")) is Error.TOPIC_AUTHORIZATION_FAILED


def test_a_certificate_is_a_name(secured: Secured) -> None:
    settings = secured.client("SSL", ssl_keystore_location=str(secured.folder / "client.pem"))
    assert error_of_topic(settings) is Error.NONE


def test_nobody_is_anonymous_for_the_acls(secured: Secured) -> None:
    assert error_of_topic(secured.client("PLAINTEXT")) is Error.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("protocol", "mechanism"), [("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")])
def test_records_go_through_both_ways(secured: Secured, protocol: str, mechanism: str) -> None:
    """Small and large ones, so that frames are larger than the buffer, and answers than a write."""
    settings = secured.client(protocol, mechanism, "admin")
    values = [bytes([n % 256]) * size for n, size in enumerate((1, 100, 20_000, 300_000, 900_000) * 4)]
    errors: list[Any] = []
    producer = confluent_kafka.Producer({**settings, "linger.ms": 20})
    topic = f"records-{mechanism.lower()}"
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0 and errors == [None] * len(values)
    consumer = confluent_kafka.Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 60
    while len(found) < len(values) and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(100, 1) if message.error() is None]
    consumer.close()
    assert found == values


def failure(settings: dict[str, Any]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        error_of_topic({**settings, "retries": 0, "socket.connection.setup.timeout.ms": 20_000})
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(secured: Secured, mechanism: str) -> None:
    error = failure(secured.client("SASL_SSL", mechanism, sasl_password="no"))
    assert error.error is Error.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("claims", [{"aud": "other"}, {"seconds": -100}, {"sub": ""}, {"nbf": 4_000_000_000}])
def test_a_token_that_is_not_for_us_is_refused(secured: Secured, claims: dict[str, Any]) -> None:
    token = secured.token("alice", **{"seconds": 300, **{k: v for k, v in claims.items() if k != "sub"}})
    if "sub" in claims:
        token = secured.token(claims["sub"])
    error = failure({**secured.client("SASL_SSL", "OAUTHBEARER"), "oauth_cb": lambda _: token})
    assert error.error is Error.SASL_AUTHENTICATION_FAILED


def test_a_client_without_a_certificate_is_refused_where_one_is_required(secured: Secured) -> None:
    assert failure(secured.client("SSL"))
    assert failure(secured.client("SSL", ssl_keystore_location=str(secured.folder / "stranger.pem")))


def said_to(secured: Secured, protocol: str, data: bytes) -> bytes:
    """Send bytes, and read until the end."""
    with socket.create_connection(("127.0.0.1", secured.ports[protocol]), timeout=30) as sock:
        sock.sendall(data)
        answer = b""
        with suppress(ConnectionResetError):
            while part := sock.recv(1000):
                answer += part
        return answer


def test_plain_text_on_a_tls_port_is_closed(secured: Secured) -> None:
    said_to(secured, "SASL_SSL", b"GET / HTTP/1.1\r\n\r\n")
    said_to(secured, "SSL", b"\0\0\0\x10\0\x12\0\0\0\0\0\x01\0\x06rawraw")


def test_a_tls_hello_on_a_plain_port_is_closed(secured: Secured) -> None:
    for protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        with (
            socket.create_connection(("127.0.0.1", secured.ports[protocol]), timeout=30) as sock,
            pytest.raises((ssl.SSLError, OSError)),
        ):
            ssl._create_unverified_context().wrap_socket(sock)


@pytest.mark.parametrize("size", [524_289, 600_000, 2**31 - 1])
def test_a_frame_that_is_too_large_before_authentication_is_closed(secured: Secured, size: int) -> None:
    assert said_to(secured, "SASL_PLAINTEXT", size.to_bytes(4)) == b""


def test_old_versions_of_tls_are_refused(secured: Secured) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    place = "127.0.0.1", secured.ports["SASL_SSL"]
    with socket.create_connection(place, timeout=30) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock)


def test_secrets_are_not_described(secured: Secured) -> None:
    with admin(secured) as client:
        resource = m.DescribeConfigsRequest_DescribeConfigsResource(4, "1", None)
        (result,) = client.send(m.DescribeConfigsRequest([resource]), 1).results
    text = repr(result)
    assert "sasl.jaas.config" in text
    assert not any(secret in text for secret in (*USERS.values(), "shared by all brokers"))


def test_a_listener_of_each_kind_is_told_with_its_port(secured: Secured) -> None:
    for protocol, mechanism in (("SASL_SSL", "PLAIN"), ("SASL_PLAINTEXT", "PLAIN")):
        with Client(secured.client(protocol, mechanism, "admin")) as client:
            assert [one.port for one in client.send(m.MetadataRequest([])).brokers] == [secured.ports[protocol]]
    assert len(LISTENERS) == len(secured.ports)


def test_a_new_certificate_is_used_by_new_connections_and_hurts_no_old_one(secured: Secured) -> None:
    import trustme

    path = secured.folder / "broker.pem"
    with admin(secured) as client:
        client.send(m.MetadataRequest([]))
        before, old = shown(secured), path.read_bytes()
        path.write_bytes(b"damaged")
        assert shown(secured) == before
        trustme.CA().issue_cert("elsewhere.example").private_key_and_cert_chain_pem.write_to_path(str(path))
        assert shown(secured) == before, "other names need leave"
        path.write_bytes(secured.identity())
        assert shown(secured) != before
        client.send(m.MetadataRequest([]))
        path.write_bytes(old)


def alter(secured: Secured, **settings: str) -> tuple[Error, str]:
    """Change settings of the listener SASL_SSL while it runs."""
    row = m.IncrementalAlterConfigsRequest_AlterableConfig
    changes = [row(f"listener.name.sasl_ssl.{name.replace('_', '.')}", 0, text) for name, text in settings.items()]
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(4, "1", changes)
    with admin(secured) as client:
        (answer,) = client.send(m.IncrementalAlterConfigsRequest([resource]), 1).responses
    return Error(answer.error_code), answer.error_message or ""


def test_a_store_that_cannot_be_used_is_refused_while_running(secured: Secured) -> None:
    before = shown(secured)
    error, message = alter(secured, ssl_keystore_location="/no/such/file")
    assert error is Error.INVALID_REQUEST and "No such file" in message
    error, message = alter(secured, ssl_keystore_location=str(secured.folder / "client.pem"))
    assert error is Error.INVALID_REQUEST and "ssl.allow.dn.changes" in message
    assert shown(secured) == before
    (secured.folder / "second.pem").write_bytes(secured.identity())
    assert alter(secured, ssl_keystore_location=str(secured.folder / "second.pem")) == (Error.NONE, "")
    assert shown(secured) != before


def shown(secured: Secured) -> str:
    """The certificate that a new connection sees."""
    return ssl.get_server_certificate(("127.0.0.1", secured.ports["SASL_SSL"]), timeout=30)

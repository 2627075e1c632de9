"""A connection to brokers that misbehave: each failure is one error, soon, with a sentence that says what is wrong."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from moldau.client import Client, ClientError
from moldau.client.config import Address, Config
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline
from moldau.settings import SettingError
from moldau.testing import Broker
from moldau.testing.ports import free_port
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.client.fake import Fake
from tests.client.proxy import Proxy


def connect(address: str, seconds: float = 5.0, **more: Any) -> Connection:
    config = Config({"bootstrap.servers": address, **{name.replace("_", "."): value for name, value in more.items()}})
    return Connection(config.bootstrap[0], config, None, Deadline(seconds))


def failure(call: Callable[[], Any]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value


def ask(fake: Fake, request: Any = None, seconds: float = 5.0, **more: Any) -> Any:
    connection = connect(fake.address, **more)
    try:
        return connection.call(request or m.DescribeClusterRequest(), Deadline(seconds))
    finally:
        connection.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that accepts and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_where_nobody_listens_is_an_error_at_once() -> None:
    error = failure(lambda: connect(f"127.0.0.1:{free_port()}"))
    assert (error.error, error.retriable) == (Error.NETWORK_EXCEPTION, True)
    assert "cannot be reached (Connection refused)" in str(error)


def test_a_name_that_does_not_exist_is_an_error() -> None:
    assert "is not known" in str(failure(lambda: connect("no.such.host.invalid:9092")))


def test_a_broker_that_says_nothing_is_given_up_in_time(silent: str) -> None:
    error = failure(lambda: connect(silent, 0.2))
    assert error.error is Error.REQUEST_TIMED_OUT
    assert "accepts connections and says nothing" in str(error)


def test_a_port_that_swallows_everything_is_given_up_in_time() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        queue = [socket.socket() for _ in range(4)]  # a full queue drops whoever knocks
        for knocking in queue:
            knocking.setblocking(False)
            knocking.connect_ex(server.getsockname())
        error = failure(lambda: connect(f"127.0.0.1:{server.getsockname()[1]}", 0.2))
        for knocking in queue:
            knocking.close()
    assert error.error is Error.REQUEST_TIMED_OUT


def test_an_answer_that_does_not_come_is_given_up_and_ends_the_connection() -> None:
    with Fake(lambda _: None) as fake:
        connection = connect(fake.address)
        error = failure(lambda: connection.call(m.DescribeClusterRequest(), Deadline(0.1)))
        assert error.error is Error.REQUEST_TIMED_OUT
        assert "did not answer DescribeCluster in time" in str(error)
        assert not connection.is_open
        assert "is closed" in str(failure(lambda: connection.call(m.DescribeClusterRequest(), Deadline(0.1))))


GARBAGE = {
    "an end": (b"", "closed the connection"),
    "half a length": (b"\0\0", "closed the connection"),
    "half an answer": (b"\0\0\0\x20" + b"x", "closed the connection"),
    "another number": (b"\0\0\0\x06\0\0\x7f\x7f\0\0", "carries the number"),
    "no answer": (b"\0\0\0\x05\0\0\0\x02\0", "makes no sense"),
    "too short": (b"\0\0\0\x02ab", "an answer of 2 bytes"),
    "negative": (b"\xff\xff\xff\xff", "an answer of -1 bytes"),
    "too long": (b"\x7f\xff\xff\xff", "receive.message.max.bytes is 100000000"),
    "TLS": (b"\x15\x03\x03\0\x02\x02\x28", "sent TLS; see security.protocol"),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "sent HTTP"),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_told_from_answers(what: str) -> None:
    answer, words = GARBAGE[what]
    with Fake(lambda _: answer) as fake:
        error = failure(lambda: ask(fake))
    assert words in str(error)
    assert error.retriable == ("closed" in words), "only a broker that went away may come back"


def test_an_answer_over_the_limit_is_refused() -> None:
    def large(_: Any) -> Any:
        return m.DescribeClusterResponse(cluster_id="x" * 2000)

    with Fake(large) as fake:
        assert "receive.message.max.bytes is 1000" in str(failure(lambda: ask(fake, receive_message_max_bytes=1000)))


def test_the_newest_version_of_both_is_spoken() -> None:
    with Fake(lambda r: m.FindCoordinatorResponse(), {10: (0, 2)}) as fake:
        connection = connect(fake.address)
        assert connection.version_of(m.FindCoordinatorRequest) == 2
        assert connection.version_of(m.FindCoordinatorRequest, at_most=1) == 1
        assert connection.version_of(m.MetadataRequest) == 13


def test_a_request_goes_down_to_the_version_that_can_carry_it() -> None:
    with Fake(lambda r: m.FindCoordinatorResponse(node_id=7)) as fake:
        assert ask(fake, m.FindCoordinatorRequest(key="g")).node_id == 7
        assert fake.seen[0].key == "g"


def test_a_request_that_no_version_can_carry_is_refused_here() -> None:
    with Fake(lambda r: None, {10: (4, 6)}) as fake:
        error = failure(lambda: ask(fake, m.FindCoordinatorRequest(key="g")))
        assert error.error is Error.UNSUPPORTED_VERSION
        assert fake.seen == []


def test_a_request_that_the_broker_does_not_have_is_refused_here() -> None:
    with Fake(lambda r: None, {60: (7, 9)}) as fake:
        error = failure(lambda: ask(fake))
    assert error.error is Error.UNSUPPORTED_VERSION
    assert "does not offer DescribeClusterRequest: it has versions 7 to 9" in str(error)


def test_a_broker_that_only_knows_old_versions_of_the_first_request_is_asked_again() -> None:
    versions: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def old() -> None:
            connection, _ = server.accept()
            for _ in range(2):
                (size,) = struct.unpack(">i", connection.recv(4))
                _, version, number = struct.unpack(">hhi", connection.recv(size)[:8])
                versions.append(version)
                code = 35 if version else 0
                body = struct.pack(">ihi", number, code, 1) + struct.pack(">hhh", 18, 0, 0)
                connection.sendall(struct.pack(">i", len(body)) + body)
            connection.close()

        threading.Thread(target=old, daemon=True).start()
        connection = connect(f"127.0.0.1:{server.getsockname()[1]}")
    assert versions == [4, 0]
    assert connection.versions == {18: (0, 0)}
    connection.close()


def test_answers_come_in_the_order_of_their_requests() -> None:
    with Fake(lambda r: m.DescribeGroupsResponse(throttle_time_ms=int(r.groups[0]))) as fake:
        connection = connect(fake.address)
        for number in range(5):
            connection.send(m.DescribeGroupsRequest(groups=[str(number)]), Deadline(5))
        assert connection.in_flight == 5
        assert [connection.receive(Deadline(5)).throttle_time_ms for _ in range(5)] == [0, 1, 2, 3, 4]
        connection.close()


def test_a_write_that_wants_no_answer_waits_for_none() -> None:
    with Fake(lambda r: None) as fake:
        assert ask(fake, m.ProduceRequest(acks=0)) is None


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secured(kafka_shared: Broker, authority: trustme.CA) -> Iterator[Proxy]:
    """Moldau behind TLS, which wants a certificate of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    with Proxy(kafka_shared.port, context) as proxy:
        yield proxy


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def over_tls(proxy: Proxy, host: str = "localhost", **more: Any) -> Any:
    port = proxy.address.rpartition(":")[2]
    given = {name.replace("_", "."): value for name, value in more.items()}
    with Client({"bootstrap.servers": f"{host}:{port}", "security.protocol": "ssl", **given}) as client:
        return client.send(m.DescribeClusterRequest(), timeout_s=5).brokers


def test_tls_is_spoken_with_a_broker_whose_authority_is_trusted(secured: Proxy, ca: str, authority: trustme.CA) -> None:
    assert over_tls(secured, ssl_ca_location=ca)
    assert over_tls(secured, ssl_ca_pem=authority.cert_pem.bytes().decode())


def test_a_broker_whose_authority_is_not_trusted_is_refused(secured: Proxy) -> None:
    error = failure(lambda: over_tls(secured))
    assert not error.retriable
    assert "its certificate is not accepted" in str(error) and "ssl.ca.location" in str(error)


def test_a_certificate_for_another_host_is_refused_unless_told_otherwise(secured: Proxy, ca: str) -> None:
    error = failure(lambda: over_tls(secured, "127.0.0.1", ssl_ca_location=ca))
    assert "ssl.endpoint.identification.algorithm" in str(error)
    assert over_tls(secured, "127.0.0.1", ssl_ca_location=ca, ssl_endpoint_identification_algorithm="none")
    assert over_tls(secured, "127.0.0.1", enable_ssl_certificate_verification=False)


def test_a_client_shows_its_certificate(secured: Proxy, ca: str, authority: trustme.CA, tmp_path: Path) -> None:
    mine = authority.issue_cert("client.example")
    mine.private_key_pem.write_to_path(str(tmp_path / "key"))
    mine.cert_chain_pems[0].write_to_path(str(tmp_path / "cert"))
    assert over_tls(
        secured, ssl_ca_location=ca, ssl_certificate_location=tmp_path / "cert", ssl_key_location=tmp_path / "key"
    )
    texts = {"ssl_certificate_pem": mine.cert_chain_pems[0].bytes().decode()}
    assert over_tls(secured, ssl_ca_location=ca, ssl_key_pem=mine.private_key_pem.bytes().decode(), **texts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl_ca_location", "/no/such/file"),
        ("ssl_certificate_location", "/no/such/file"),
        ("ssl_ca_pem", "nonsense"),
        ("ssl_certificate_pem", "nonsense"),
        ("ssl_cipher_suites", "nonsense"),
    ],
)
def test_files_that_cannot_be_used_are_the_fault_of_their_setting(name: str, value: str) -> None:
    given = {"bootstrap.servers": "a", "security.protocol": "ssl", name.replace("_", "."): value}
    with pytest.raises(SettingError, match=f"{name.replace('_', '.')}.* it cannot be used"):
        Client(given)


def test_tls_with_a_broker_that_speaks_none_is_refused(kafka_shared: Broker) -> None:
    settings = {"bootstrap.servers": kafka_shared.bootstrap_servers, "security.protocol": "ssl"}
    with Client({**settings, "default.api.timeout.ms": 2000}) as client:
        error = failure(lambda: client.send(m.DescribeClusterRequest()))
    assert "TLS" in str(error) or "closed" in str(error)


def test_no_tls_with_a_broker_that_wants_it_is_refused(secured: Proxy) -> None:
    error = failure(lambda: connect(secured.address, 3.0))
    assert "security.protocol" in str(error)


def test_address_of_version_six_is_written_in_brackets() -> None:
    assert str(Address("::1", 9)) == "[::1]:9"

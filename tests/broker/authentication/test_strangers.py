"""Those who connect and do not authenticate: they are ended in time, are few, and hold up nobody who does."""

from __future__ import annotations

import datetime
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
import trustme

from moldau.client import Client, ClientError
from moldau.testing.process import Broker, eventually
from moldau.wire import frames
from moldau.wire import messages as m
from tests.broker.authentication.secured import Secured
from tests.tls.keystores import self_signed

TIMEOUT_MS = 1500
MOST = 5
MANY = 300
PATIENCE_S = 20.0  # of the tests, on a machine that is busy; a byte now and then would be enough for hours
RESET = struct.pack("ii", 1, 0)  # linger for no time: a close resets the connection


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured = Secured(Path(tmp_path_factory.mktemp("strangers")))
    more = {"moldau_authentication_timeout_ms": str(TIMEOUT_MS), "moldau_authentication_max_connections": str(MOST)}
    broker = Broker(secured.broker(**more))
    broker.start()
    yield secured
    broker.close()


def connect(secured: Secured, protocol: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", secured.ports[protocol]), timeout=60)


def ends(sock: socket.socket) -> bool:
    """Wait for the end of a connection."""
    with suppress(ConnectionResetError):
        while sock.recv(1000):
            pass
    return True


def hello() -> bytes:
    """The first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_silence_ends(secured: Secured) -> None:
    said = (b"", b"\0\0\0", hello()[:100], hello())
    with ExitStack() as open_ones:
        silent: list[socket.socket] = []
        for protocol in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            for data in said:
                silent.append(open_ones.enter_context(connect(secured, protocol)))
                silent[-1].sendall(data)
        assert all(map(ends, silent))


def test_one_byte_after_the_other_does_not_keep_a_connection(secured: Secured) -> None:
    with connect(secured, "SASL_SSL") as sock:
        sock.settimeout(0.05)
        with pytest.raises(OSError, match=r"(?i)broken|reset"):
            for byte in hello()[:-1]:
                sock.sendall(bytes([byte]))
                time.sleep(0.05)


def exchange(sock: socket.socket, *requests: tuple[Any, int]) -> None:
    for request, version in requests:
        sock.sendall(frames.request_frame(request, version, 1, "x"))
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4]):
            if not (part := sock.recv(65536)):
                raise ConnectionAbortedError
            answer += part


VERSIONS, SHAKE = (m.ApiVersionsRequest("x", "1"), 3), (m.SaslHandshakeRequest("SCRAM-SHA-256"), 1)
FIRST = (m.SaslAuthenticateRequest(b"n,,n=alice,r=abc"), 2)
STAGES: dict[str, tuple[tuple[Any, int], ...]] = {
    "at once": (),
    "after ApiVersions": (VERSIONS,),
    "after the handshake of SASL": (VERSIONS, SHAKE),
    "between the messages of SCRAM": (SHAKE, FIRST),
    "before a raw token": ((m.SaslHandshakeRequest("PLAIN"), 0),),
    "after a refusal": (SHAKE, (m.SaslAuthenticateRequest(b"n,,n=alice"), 2)),
}


def linger(secured: Secured, protocol: str, stage: str, by_bytes: bool) -> float:
    """Come to a stage and stay, silent or with a byte now and then; returns after how many seconds it was over."""
    begin = time.monotonic()
    with connect(secured, protocol) as plain, suppress(ConnectionError, ssl.SSLEOFError):
        context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
        sock = context.wrap_socket(plain, server_hostname="localhost") if protocol == "SASL_SSL" else plain
        with sock:
            exchange(sock, *STAGES[stage])
            begin = time.monotonic()
            for byte in chain(b"\0\1\0\0", repeat(0)) if by_bytes else ():
                sock.sendall(bytes((byte,)))
                time.sleep(0.05)
                if time.monotonic() - begin > PATIENCE_S:
                    break
            ends(sock)
    return time.monotonic() - begin


@pytest.mark.parametrize("by_bytes", [False, True], ids=["silent", "a byte now and then"])
def test_who_does_not_go_on_is_ended_at_every_stage(secured: Secured, by_bytes: bool) -> None:
    with ThreadPoolExecutor(MOST - 1) as threads:
        found = {
            (protocol, stage): threads.submit(linger, secured, protocol, stage, by_bytes)
            for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
            for stage in STAGES
        }
    assert all(one.result() < PATIENCE_S for one in found.values())


def test_who_has_authenticated_stays(secured: Secured) -> None:
    with Client(secured.client("SASL_SSL", "PLAIN")) as client:
        client.send(m.MetadataRequest([]))
        with connect(secured, "SASL_SSL") as other:  # comes later and is closed by the time-out: ours has passed too
            assert ends(other)
        client.send(m.MetadataRequest([]), timeout_s=30)


def test_too_many_strangers_wait_and_hold_up_no_other_listener(secured: Secured) -> None:
    with ExitStack() as open_ones:
        for _ in range(3 * MOST):
            open_ones.enter_context(connect(secured, "SASL_PLAINTEXT"))
        for protocol, mechanism in (("PLAINTEXT", ""), ("SASL_SSL", "PLAIN")):
            with Client(secured.client(protocol, mechanism)) as client:
                client.send(m.MetadataRequest([]), timeout_s=30)
        with Client(secured.client("SASL_PLAINTEXT", "PLAIN")) as client:  # its turn comes when they are ended
            client.send(m.MetadataRequest([]), timeout_s=60)


def test_certificates_that_do_not_count_are_refused(secured: Secured) -> None:
    now = datetime.datetime.now(datetime.UTC)
    ca, day = secured.authority, datetime.timedelta(days=1)
    issued = {
        "expired": ca.issue_cert("c", not_before=now - 2 * day, not_after=now - day),
        "not yet": ca.issue_cert("c", not_before=now + day, not_after=now + 2 * day),
        "a stranger's": trustme.CA().issue_cert("c"),
    }
    stores = {name: one.private_key_and_cert_chain_pem.bytes() for name, one in issued.items()}
    for name, store in (stores | {"self-signed": self_signed("client").pem}).items():
        path = secured.folder / "bad.pem"
        path.write_bytes(store)
        settings = secured.client("SSL", ssl_keystore_location=str(path), retries=0)
        with Client(settings) as client, pytest.raises(ClientError):
            client.send(m.MetadataRequest([]), timeout_s=20)
            pytest.fail(f"{name} came in")


def test_a_client_does_not_trust_a_broker_of_another_authority(secured: Secured) -> None:
    path = secured.folder / "other-ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    settings = secured.client("SASL_SSL", "PLAIN", ssl_ca_location=str(path), retries=0)
    with Client(settings) as client, pytest.raises(ClientError, match="not accepted"):
        client.send(m.MetadataRequest([]), timeout_s=20)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secured, Broker]]:
    """A broker that lets many strangers stay."""
    secured = Secured(Path(tmp_path_factory.mktemp("patient")))
    more = {"listener.name.ssl.ssl.client.auth": "none", "moldau.authentication.max.connections": "10000"}
    broker = Broker(secured.broker() | more | {"max.connections.per.ip": str(4 * MANY)})
    broker.start()
    yield secured, broker
    broker.close()


def memory_kb(broker: Broker) -> int:
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def come_in(secured: Secured) -> float:
    """Log in; returns the seconds that it took."""
    began = time.monotonic()
    with Client(secured.client("SASL_SSL", "PLAIN")) as client:
        client.send(m.MetadataRequest([]), timeout_s=60)
    return time.monotonic() - began


def test_half_a_hello_costs_what_a_plain_connection_does(patient: tuple[Secured, Broker]) -> None:
    secured, broker = patient
    come_in(secured)
    before = memory_kb(broker)
    with ExitStack() as open_ones:
        for number in range(MANY):
            sock = open_ones.enter_context(connect(secured, "SSL"))
            sock.sendall((hello()[:-1], hello()[:4], b"\x16\x03\x01\x40\0" + bytes(4096))[number % 3])
        come_in(secured)
        assert memory_kb(broker) - before < 10 * MANY  # it is 50 KB with OpenSSL


def test_a_hello_that_comes_in_pieces_is_heard(patient: tuple[Secured, Broker]) -> None:
    secured, _ = patient
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=str(secured.folder / "ca.pem")).wrap_bio(
        incoming, outgoing, server_hostname="localhost"
    )
    with connect(secured, "SSL") as sock:
        while True:
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
                break
            data = outgoing.read()
            for piece in (data[:3], data[3:5], data[5:100], data[100:]):
                sock.sendall(piece)
                time.sleep(0.05)
            incoming.write(sock.recv(65536))
        assert client.version() == "TLSv1.3"


def test_half_a_hello_and_an_end_is_closed(patient: tuple[Secured, Broker]) -> None:
    for data in (b"", hello()[:4], hello()[:100], hello()):
        with connect(patient[0], "SSL") as sock:
            sock.settimeout(10)  # it is 30 s without the end
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            assert ends(sock)


def test_handshakes_that_stop_half_way_do_not_keep_others_from_theirs(patient: tuple[Secured, Broker]) -> None:
    secured, _ = patient
    with ExitStack() as open_ones:
        for _ in range(MANY):  # more than may be half done
            open_ones.enter_context(connect(secured, "SSL")).sendall(hello())
        assert come_in(secured) < 20  # a second, and what the machine takes; 30 s is the time-out


def test_a_peer_that_is_gone_before_its_handshake_leaves_its_place(patient: tuple[Secured, Broker]) -> None:
    secured, broker = patient
    for _ in range(5 * MANY):  # more than one address may have
        sock = connect(secured, "SSL")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.sendall(hello()[:1])
        sock.close()

    def comes_in() -> bool:
        with suppress(ClientError):  # those before may have to be closed first
            return come_in(secured) > 0
        return False

    eventually(comes_in, 30, "that an address has room again")
    assert "Traceback" not in broker.log

"""TLS peers whose records hold little or nothing: none of them keeps the loop, and each is refused in one line."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from select import select

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau.broker.rim.tls import ENDLESS, MOST_RECORDS, PORTION, TlsSocket
from moldau.client import Client
from moldau.testing.process import Broker, eventually
from moldau.tls import server_context
from moldau.wire import frames
from moldau.wire import messages as m
from tests.broker.authentication.secured import Secured
from tests.broker.authentication.test_strangers import exchange, memory_kb
from tests.tls.keystores import AUTHORITY, FOR_SERVERS, Pair, chain, issue, self_signed, shown
from tests.tls.records import DATA, HANDSHAKE, Sealer, Sealer13, shake_hands

ALERT = 21
HELLO, TICKET, WARNING = b"\x01\0\0\0", b"\x04\0\0\0", b"\x01\x6e"
TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
ROOT = issue("root", extensions=(AUTHORITY,))
MOST_KB = 8 * 1024
ADDRESSES = count(2)
MANY_BYTES = 2000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secured, Broker]]:
    secured = Secured(Path(tmp_path_factory.mktemp("records")))
    with (secured.folder / "ca.pem").open("ab") as file:
        file.write(ROOT.certificate.public_bytes(Encoding.PEM))
    broker = Broker(secured.broker())
    broker.start()
    yield secured, broker
    broker.close()


def connect(secured: Secured, protocol: str = "SASL_SSL") -> socket.socket:
    """Connect, each time from another address: the log has but a few lines of one."""
    return socket.create_connection(("127.0.0.1", secured.ports[protocol]), 20, (f"127.0.0.{next(ADDRESSES)}", 0))


def peer_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()
    return f"peer={host}:{port}"


def refuse(sock: socket.socket, data: bytes) -> None:
    """Send data, and wait for the end of the connection, which comes long before its time to authenticate is over."""

    def send() -> None:
        with suppress(OSError):
            sock.sendall(data)

    sender = threading.Thread(target=send)
    sender.start()
    with suppress(ConnectionError):
        while sock.recv(4096):
            pass
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sender.join()


@pytest.mark.parametrize(
    ("version", "content", "kind"),
    [
        (TLS_1_3, b"", DATA),
        (TLS_1_3, b"", HANDSHAKE),
        (TLS_1_3, HELLO, HANDSHAKE),
        (TLS_1_3, TICKET, HANDSHAKE),
        (TLS_1_3, WARNING, ALERT),
        (TLS_1_2, b"", DATA),
        (TLS_1_2, b"", HANDSHAKE),
        (TLS_1_2, WARNING, ALERT),
    ],
)
def test_records_without_data_are_refused_in_one_line(
    running: tuple[Secured, Broker], version: ssl.TLSVersion, content: bytes, kind: int
) -> None:
    secured, broker = running
    with connect(secured) as sock:
        peer = peer_of(sock)
        sealer = shake_hands(sock, secured.folder, version)
        refuse(sock, b"".join(sealer.record(content, kind) for _ in range(100)))
    (line,) = (one for one in broker.log.splitlines() if peer in one)
    assert "TLS failed: " in line


def test_a_flood_of_renegotiations_keeps_nobody_out(running: tuple[Secured, Broker]) -> None:
    secured, _ = running
    with connect(secured) as sock:
        sealer = shake_hands(sock, secured.folder, TLS_1_2)
        sender = threading.Thread(
            target=refuse, args=(sock, b"".join(sealer.record(HELLO, HANDSHAKE) for _ in range(200_000)))
        )
        sender.start()
        with Client(secured.client("SASL_SSL", "PLAIN")) as client:
            client.send(m.MetadataRequest([]), timeout_s=30)
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sender.join()


def test_a_renegotiation_is_not_done(running: tuple[Secured, Broker]) -> None:
    secured, _ = running
    with connect(secured) as sock:
        sealer = shake_hands(sock, secured.folder, TLS_1_2)
        sock.sendall(sealer.record(HELLO, HANDSHAKE))
        assert sock.recv(1) == bytes((ALERT,))


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (chain(ROOT, 130), "certificate chain too long"),
        (chain(ROOT, 4, 350_000), "excessive message size"),
        ([ROOT, issue("c", ROOT, extensions=(FOR_SERVERS,))], "unsuitable certificate purpose"),
    ],
    ids=["too deep", "too large", "of a server"],
)
def test_a_clients_certificate_that_does_not_count_is_refused_with_a_line(
    running: tuple[Secured, Broker], tmp_path: Path, pairs: list[Pair], reason: str
) -> None:
    secured, broker = running
    (tmp_path / "own.pem").write_bytes(shown(pairs))
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.load_cert_chain(tmp_path / "own.pem")
    memory = memory_kb(broker)
    for _ in range(5):
        with connect(secured, "SSL") as sock:
            peer = peer_of(sock)
            with pytest.raises(OSError, match=r"(?i)alert|reset|broken"):
                context.wrap_socket(sock, server_hostname="localhost").recv(1)
        line = f'{peer} reason="the TLS handshake failed: {reason}'
        eventually(lambda line=line: line in broker.log, 20, "the line")
    assert memory_kb(broker) - memory < MOST_KB


def test_a_client_may_have_a_long_chain(running: tuple[Secured, Broker], tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_bytes(shown(chain(ROOT, 50)))
    with Client(running[0].client("SSL", ssl_keystore_location=str(tmp_path / "own.pem"))) as client:
        client.send(m.MetadataRequest([]), timeout_s=20)


@contextmanager
def accepted(version: ssl.TLSVersion, folder: Path) -> Iterator[tuple[TlsSocket, socket.socket, Sealer]]:
    """Both ends of a connection whose handshake is done: the broker's, the client's, and the client's records."""
    context = server_context({"ssl.keystore.certificate.chain": self_signed().pem.decode()}.get)
    near, far = socket.create_server(("127.0.0.1", 0)), socket.socket()
    with near, far:
        far.connect(near.getsockname())
        sock, _ = near.accept()
        sock.setblocking(False)
        server = TlsSocket(sock, context, memoryview(bytearray(PORTION)))
        with closing(server), ThreadPoolExecutor(1) as thread:
            done = thread.submit(shake_on, server, sock)
            sealer = shake_hands(far, folder, version)
            done.result()
            yield server, far, sealer


def shake_on(server: TlsSocket, sock: socket.socket) -> None:
    while True:
        try:
            return server.do_handshake()
        except ssl.SSLWantReadError:
            assert select([sock], [], [], 20)[0]


def read_on(server: TlsSocket, seconds: float = 20) -> list[int]:
    """Read until nothing comes any more; returns how much each call returned."""
    room, counts, end = memoryview(bytearray(1 << 17)), [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            counts.append(server.recv_into(room))
        except BlockingIOError:
            if counts and sum(counts) == MANY_BYTES:
                break
            time.sleep(0.001)
    return counts


def test_one_connection_has_a_share_of_records(tmp_path: Path) -> None:
    with accepted(TLS_1_3, tmp_path) as (server, client, sealer):
        sender = threading.Thread(
            target=client.sendall, args=(b"".join(sealer.record(b"x") for _ in range(MANY_BYTES)),)
        )
        sender.start()
        counts = read_on(server)
        sender.join()
    assert sum(counts) == MANY_BYTES and max(counts) <= MOST_RECORDS


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
def test_records_without_data_come_to_an_end(tmp_path: Path, version: ssl.TLSVersion) -> None:
    with accepted(version, tmp_path) as (server, client, sealer):
        if isinstance(sealer, Sealer13):
            data = b"".join(sealer.key_update() for _ in range(20_000))
        else:
            data = b"".join(sealer.record(HELLO, HANDSHAKE) for _ in range(200_000))
        sender = threading.Thread(target=refuse, args=(client, data))
        sender.start()
        with pytest.raises(ssl.SSLError, match=ENDLESS):
            read_on(server)
        server.close()
        sender.join()


def test_a_large_request_arrives_in_pieces_of_any_size(running: tuple[Secured, Broker]) -> None:
    """The channel sleeps until much of it is there: neither its end nor the small request after it may be missed."""
    secured, _ = running
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.load_cert_chain(secured.folder / "client.pem")
    topics = [m.MetadataRequest_MetadataRequestTopic(name=f"{number:0200}") for number in range(1500)]
    large = m.MetadataRequest(topics, allow_auto_topic_creation=False), 9
    frame = frames.request_frame(*large, 1, "x")
    chance = Random(7)
    with context.wrap_socket(connect(secured, "SSL"), server_hostname="localhost") as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for most in (3_000, 16_384, 40_000, 300_000):
            sent = 0
            while sent < len(frame):
                size = chance.randint(1, most)
                sock.sendall(frame[sent : sent + size])
                sent += size
                time.sleep(chance.choice((0, 0, 0.002)))
            await_answer(sock)
            exchange(sock, (m.ApiVersionsRequest("x", "1"), 3), large)


def await_answer(sock: socket.socket) -> None:
    size, answer = sock.recv(4), 0
    while answer < int.from_bytes(size):
        answer += len(sock.recv(65536))

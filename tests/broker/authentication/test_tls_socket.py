"""A socket with TLS behaves as a plain one does, whatever the sizes of records, rooms and buffers."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from select import select

import pytest

from moldau.broker.rim.tls import PORTION, RECORD, TlsSocket
from moldau.broker.rim.transport import SHARED_SIZE
from moldau.testing.process import Broker
from moldau.tls import server_context
from moldau.wire import frames
from moldau.wire import messages as m
from tests.broker.authentication.secured import Secured
from tests.broker.authentication.test_strangers import exchange
from tests.tls.keystores import self_signed

SMALL_BUFFER = 16 * 1024
LONG = 3 << 20
WAIT_S = 20


@contextmanager
def pair(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Iterator[tuple[TlsSocket, socket.socket, ssl.SSLSocket]]:
    """The broker's end of a connection, the plain socket below it, and the client's end."""
    context = server_context({"ssl.keystore.certificate.chain": self_signed().pem.decode()}.get)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    trusting.maximum_version = version
    near, far = socket.socketpair()
    for sock in (near, far):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
    near.setblocking(False)
    server = TlsSocket(near, context, memoryview(bytearray(PORTION)))
    opened: list[ssl.SSLSocket] = []
    client = threading.Thread(target=lambda: opened.append(trusting.wrap_socket(far)))
    client.start()
    with closing(server):
        while True:
            try:
                server.do_handshake()
                break
            except ssl.SSLWantReadError:
                assert select([near], [], [], WAIT_S)[0]
        client.join()
        with opened[0]:
            yield server, near, opened[0]


def say_goodbye(client: ssl.SSLSocket) -> None:
    """Leave, but do not close the connection."""
    client.setblocking(False)
    while True:
        try:
            client.unwrap()
        except ssl.SSLWantWriteError:
            assert select([], [client], [], WAIT_S)[1]
        except ssl.SSLWantReadError:
            return


def read_all(server: TlsSocket, plain: socket.socket, chance: Random) -> bytes:
    """Read as the loop does: when something arrives, or when the socket says that there is more."""
    got = bytearray()
    while server.pending() or select([plain], [], [], WAIT_S)[0]:
        room = memoryview(bytearray(chance.choice((1, 100, 5_000, 20_000, 200_000))))
        try:
            count = server.recv_into(room)
        except BlockingIOError:
            continue
        if not count:
            break
        got += room[:count]
    return bytes(got)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_was_sent_is_read_to_the_goodbye(version: ssl.TLSVersion, seed: int) -> None:
    chance = Random(seed)
    data = chance.randbytes(LONG)
    with pair(version) as (server, plain, client):

        def send() -> None:
            at = 0
            while at < len(data):
                size = chance.choice((1, 3, 300, 2_300, 16_384, 70_000))
                client.sendall(data[at : at + size])
                at += size
            say_goodbye(client)

        sender = threading.Thread(target=send)
        sender.start()
        assert read_all(server, plain, Random(seed)) == data
        sender.join()


@pytest.mark.parametrize("seed", range(4))
def test_what_a_full_socket_did_not_take_is_offered_again(seed: int) -> None:
    """Also while the peer asks for new keys, which has to go between."""
    chance = Random(seed)
    data = chance.randbytes(LONG)
    got = bytearray()
    with pair() as (server, plain, client):

        def receive() -> None:
            while len(got) < len(data):
                got.extend(client.recv(chance.choice((100, 20_000, 200_000))))

        receiver = threading.Thread(target=receive)
        receiver.start()
        at, held = 0, 0
        while at < len(data):
            offered = data[at : at + chance.choice((1, 900, PORTION, 3 * PORTION))]
            while offered:
                try:
                    sent = server.send(offered)
                except BlockingIOError:
                    held += 1
                    assert select([], [plain], [], WAIT_S)[1]
                    continue
                at, offered = at + sent, offered[sent:]
        receiver.join()
    assert bytes(got) == data and held


def test_a_closed_socket_keeps_nothing_of_openssl() -> None:
    """What holds it is in a cycle, which is looked for seldom: a storm of connections would leave all of it behind."""
    with pair() as (server, _, _):
        kept = weakref.ref(server._tls)
        server.close()
        assert kept() is None
        server.close()


def test_a_peer_that_is_gone_is_the_end_without_an_error() -> None:
    with pair(ssl.TLSVersion.TLSv1_2) as (server, plain, client):
        client.sendall(b"last")
        socket.socket.close(client)  # without a goodbye
        assert read_all(server, plain, Random(1)) == b"last"


def test_a_request_that_was_cut_short_on_the_way_is_an_error_with_words() -> None:
    with pair() as (server, plain, client):
        raw = socket.socket(fileno=client.detach())
        with raw:
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            assert select([plain], [], [], WAIT_S)[0]
            with pytest.raises(ssl.SSLError, match=r"(?i)decryption failed|bad record mac"):
                server.recv_into(memoryview(bytearray(100)))
            assert raw.recv(1)  # the alert


def test_requests_that_wait_behind_another_are_answered_though_nothing_more_arrives(tmp_path: Path) -> None:
    """A connection that is held up stops reading in the midst of what has been taken from the socket."""
    secured = Secured(tmp_path)
    broker = Broker(secured.broker())
    broker.start()
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.load_cert_chain(secured.folder / "client.pem")
    topic = m.FetchRequest_FetchTopic("t", partitions=[m.FetchRequest_FetchPartition(0, -1, 0, -1, -1, 1 << 20)])
    waiting = m.FetchRequest(replica_id=-1, max_wait_ms=700, min_bytes=1 << 20, max_bytes=1 << 20, topics=[topic])
    after = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="x" * 2000)], False)
    count = 67
    try:
        with (
            socket.create_connection(("127.0.0.1", secured.ports["SSL"]), WAIT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as sock,
        ):
            create = m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic("t", 1, 1)], timeout_ms=WAIT_S * 1000)
            exchange(sock, (create, 5))
            sock.sendall(frames.request_frame(waiting, 12, 0, "x"))
            time.sleep(0.1)  # it is waited for
            # As many as fill the room, and a little, which stays in the socket with TLS; the socket below it is empty.
            sent = b"".join(frames.request_frame(after, 9, number, "x") for number in range(1, count))
            assert SHARED_SIZE < len(sent) < SHARED_SIZE + RECORD
            sock.sendall(sent)
            left = bytearray()
            for number in range(count):
                while len(left) < 8 or len(left) < 4 + int.from_bytes(left[:4]):
                    part = sock.recv(1 << 16)
                    assert part
                    left += part
                assert int.from_bytes(left[4:8]) == number
                del left[: 4 + int.from_bytes(left[:4])]
    finally:
        broker.close()

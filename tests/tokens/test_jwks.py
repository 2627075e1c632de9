"""Servers of keys that are slow, endless, elsewhere or silent: each is refused, within a time and a size."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat

import pytest
from joserfc.jwk import ECKey

from moldau.settings import SettingError
from moldau.tokens.jwks import MOST_BYTES, Keys

WHOLE_S = 0.5
LATE = f"it takes more than {WHOLE_S} s"
PATIENCE_S = 30.0  # of the tests; a server that says a byte now and then would go on for minutes
KEYS = json.dumps({"keys": [ECKey.generate_key("P-256", {"kid": "one"}).as_dict(private=False)]}).encode()
OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS_BODY = OK + b"\r\n"
MOST_KB = 64 * 1024

Say = Callable[[socket.socket], None]


@contextmanager
def server(say: Say) -> Iterator[str]:
    """Serve whatever connects with `say`, which ends when the client goes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listening.accept()
                    with sock, suppress(OSError):
                        say(sock)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/keys"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def by_bytes(text: bytes, every_s: float = 0.05) -> Say:
    def say(sock: socket.socket) -> None:
        for byte in text:
            sock.sendall(bytes((byte,)))
            time.sleep(every_s)

    return say


def after_request(*parts: bytes) -> Say:
    def say(sock: socket.socket) -> None:
        sock.recv(65536)
        for part in parts:
            sock.sendall(part)

    return say


def endless(sock: socket.socket) -> None:
    sock.sendall(ENDLESS_BODY)
    for part in repeat(b" " * (1 << 20), 1024):
        sock.sendall(part)


def silent(sock: socket.socket) -> None:
    while sock.recv(65536):
        pass


def read(url: str, whole_s: float = PATIENCE_S) -> object:
    return Keys("x.url", url, whole_s=whole_s).read()


def test_keys_are_read() -> None:
    length = f"Content-Length: {len(KEYS)}\r\n\r\n".encode()
    with server(after_request(OK, length, KEYS)) as url:
        assert read(url)


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (silent, LATE),
        (by_bytes(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000), LATE),
        (by_bytes(ENDLESS_BODY + b" " * 10_000), LATE),
        (endless, f"there are more than {MOST_BYTES} bytes"),
        (after_request(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), "302"),
        (after_request(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "the answer is 500"),
        (after_request(OK, b"Content-Length: 100\r\n\r\n{}"), "no keys can be read"),
        (after_request(b"SSH-2.0-x\r\n"), "no keys can be read"),
    ],
    ids=["silent", "slow head", "slow body", "a gigabyte", "redirect", "fault", "cut off", "another protocol"],
)
def test_a_server_of_keys_that_does_not_serve_is_refused(say: Say, reason: str) -> None:
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with server(say) as url:
        with pytest.raises(SettingError, match=reason):
            read(url, WHOLE_S if reason is LATE else PATIENCE_S)
        assert time.monotonic() - begin < PATIENCE_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KB


def test_keys_that_are_compressed_are_not_unpacked() -> None:
    import gzip

    packed = gzip.compress(b" " * (64 << 20))
    head = OK + f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server(after_request(head, packed)) as url, pytest.raises(SettingError, match="no keys can be read"):
        read(url)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KB


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    with pytest.raises(SettingError, match="no keys can be read"):
        read(f"http://127.0.0.1:{port}/keys")

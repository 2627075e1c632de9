"""One connection to one broker: TLS, version negotiation, authentication, then requests and their answers in order.

A connection has one user at a time. Any failure closes it, because a late answer must not be taken for that of a later
request.
"""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import time
from collections import deque
from typing import Any

from moldau import __version__
from moldau.client import sasl, tls
from moldau.client.config import Address, Config
from moldau.client.deadline import Deadline
from moldau.client.errors import ClientError, error_of, timed_out, unreachable
from moldau.wire import codec, frames, messages, schema
from moldau.wire.errors import Error, Unwritable, WireError

FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
BUFFERS = {socket.SO_SNDBUF: "socket.send.buffer.bytes", socket.SO_RCVBUF: "socket.receive.buffer.bytes"}
SESSION_SHARE = 0.8  # of an authenticated session is used, so that no request meets its end (KIP-368)
LOOKS_LIKE = {b"\x15\x03": "TLS; see security.protocol", b"HTTP": "HTTP"}

Versions = dict[int, tuple[int, int]]


class Connection:
    """A connection, open on construction. `versions` and `features` are what the broker reported."""

    def __init__(self, address: Address, config: Config, context: ssl.SSLContext | None, deadline: Deadline) -> None:
        self.address = address
        self.versions: Versions = {}
        self.features: dict[str, int] = {}
        self.idle_since = time.monotonic()
        self._config = config
        self._expires: float | None = None  # when to authenticate again (KIP-368)
        self._correlation_id = 0
        self._waiting: deque[tuple[int, type[Any], int]] = deque()  # requests without an answer yet
        within = deadline.within(config.seconds("socket.connection.setup.timeout.ms"))
        self._socket: socket.socket | None = _connect(address, config, within)
        try:
            if context is not None:
                self._socket = tls.wrap(self._socket, context, address)
            self._negotiate(within)
            if config.uses_sasl:
                self._authenticate(within)
        except TimeoutError:
            self.close()
            raise timed_out(f"{address} accepts connections and says nothing.") from None
        except OSError as error:
            raise self._lost(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def is_stale(self) -> bool:
        """Whether it was idle for too long."""
        limit = self._config.seconds("connections.max.idle.ms")
        return bool(limit and time.monotonic() - self.idle_since > limit)

    def is_fresh(self) -> bool:
        """Whether a connection that lay idle may be used: not stale, and nothing came on it, not even its end."""
        if self._socket is None or self._waiting or self.is_stale():
            return False
        try:
            self._socket.settimeout(0)
            return not self._socket.recv(1, *(() if isinstance(self._socket, ssl.SSLSocket) else (socket.MSG_PEEK,)))
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False

    def version_of(self, request: type[Any], at_most: int | None = None) -> int:
        """The newest version of a request that both sides speak."""
        spec: schema.Message = request.SCHEMA
        low, high = self.versions.get(spec.key, (0, -1))
        newest = min(high, spec.versions[1], spec.versions[1] if at_most is None else at_most)
        if newest < max(low, spec.versions[0]):
            known = f"versions {low} to {high}" if high >= 0 else "none"
            ours = f"{spec.versions[0]} to {spec.versions[1] if at_most is None else at_most}"
            sentence = f"{self.address} does not offer {spec.name}: it has {known}, this client {ours}."
            raise ClientError(Error.UNSUPPORTED_VERSION, sentence)
        return newest

    def call(self, message: Any, deadline: Deadline, *, at_most: int | None = None) -> Any:
        """Send a request and return its answer; None where none is due (Produce with acks 0)."""
        return self.receive(deadline) if self.send(message, deadline, at_most=at_most) else None

    def send(self, message: Any, deadline: Deadline, *, at_most: int | None = None) -> bool:
        """Send a request and return whether an answer is due, which `receive` gives in its turn."""
        if self._expires is not None and not self._waiting and time.monotonic() > self._expires:
            self._authenticate_again(deadline)
        frame, version = self._frame(message, at_most)
        try:
            self._live().settimeout(_at_least(deadline.left))
            self._live().sendall(frame)
        except TimeoutError:
            self.close()
            raise timed_out(f"{self.address} does not take a request of {len(frame)} bytes in time.") from None
        except OSError as error:
            raise self._lost(error) from error
        if message.SCHEMA.key == 0 and message.acks == 0:
            return False
        self._waiting.append((self._correlation_id, type(message), version))
        return True

    def receive(self, deadline: Deadline) -> Any:
        """The answer to the first request that has none yet."""
        correlation_id, request, version = self._waiting.popleft()
        try:
            frame = self._receive_frame(deadline)
        except TimeoutError:
            self.close()
            name = request.SCHEMA.name.removesuffix("Request")
            raise timed_out(f"{self.address} did not answer {name} in time.") from None
        except OSError as error:
            raise self._lost(error) from error
        try:
            return self._decode(frame, correlation_id, request.SCHEMA.key, version)
        except WireError as error:
            raise self._garbage(f"an answer to {request.SCHEMA.name} that makes no sense: {error}") from error

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def interrupt(self) -> None:
        """End it while another thread waits on it, which then gets an error."""
        if (sock := self._socket) is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already

    def _live(self) -> socket.socket:
        if self._socket is None:
            raise unreachable(f"The connection to {self.address} is closed.")
        return self._socket

    def _frame(self, message: Any, at_most: int | None) -> tuple[bytes, int]:
        """The request in the newest version that both speak and that can carry what is set in it."""
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        version = newest = self.version_of(type(message), at_most)
        lowest = max(message.SCHEMA.versions[0], self.versions[message.SCHEMA.key][0])
        while True:
            try:
                return frames.request_frame(message, version, self._correlation_id, self._config["client.id"]), version
            except Unwritable as error:
                if version <= lowest:
                    raise ClientError(
                        Error.UNSUPPORTED_VERSION,
                        f"{self.address} speaks {message.SCHEMA.name} up to {newest}: {error}.",
                    ) from error
                version -= 1

    def _decode(self, frame: memoryview, correlation_id: int, key: int, version: int) -> Any:
        found, position = frames.response_header(key, version, frame)
        if found != correlation_id:
            raise WireError(f"it carries the number {found}, not {correlation_id}")
        return codec.decode_from(messages.response_class(key), version, frame, position)[0]

    def _receive_frame(self, deadline: Deadline) -> memoryview:
        head = self._receive_exactly(4, deadline)
        (size,) = struct.unpack(">i", head)
        most = self._config["receive.message.max.bytes"]
        if not 4 <= size <= most:
            for start, what in LOOKS_LIKE.items():
                if head[: len(start)] == start:
                    raise self._garbage(what)
            raise self._garbage(f"an answer of {size} bytes; receive.message.max.bytes is {most}")
        return self._receive_exactly(size, deadline)

    def _receive_exactly(self, size: int, deadline: Deadline) -> memoryview:
        sock, view = self._live(), memoryview(bytearray(size))
        at = 0
        while at < size:
            sock.settimeout(_at_least(deadline.left))
            if not (count := sock.recv_into(view[at:])):
                raise ConnectionResetError(errno.ECONNRESET, "the broker closed the connection")
            at += count
        return view

    def _negotiate(self, deadline: Deadline) -> None:
        """Ask what the broker speaks (KIP-35): first in our newest version, else in the one that the refusal names."""
        spec = schema.message("ApiVersionsRequest")
        answer = self._api_versions(spec.versions[1], deadline)
        if answer.error_code == Error.UNSUPPORTED_VERSION:
            offered = [row.max_version for row in answer.api_keys if row.api_key == spec.key]
            answer = self._api_versions(min(spec.versions[1], *offered or [0]), deadline)
        if answer.error_code:
            sentence = f"{self.address} does not tell what it speaks: {error_of(answer.error_code).message}"
            raise ClientError(error_of(answer.error_code), sentence)
        self.versions = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        self.features = {row.name: row.max_version_level for row in answer.finalized_features}

    def _api_versions(self, version: int, deadline: Deadline) -> Any:
        self._correlation_id += 1
        request = messages.ApiVersionsRequest("moldau", __version__)
        frame = frames.request_frame(request, version, self._correlation_id, self._config["client.id"])
        sock = self._live()
        sock.settimeout(_at_least(deadline.left))
        sock.sendall(frame)
        answer = self._receive_frame(deadline)
        try:
            # A broker that does not know the version says so in version 0.
            known = struct.unpack_from(">h", answer, 4)[0] != Error.UNSUPPORTED_VERSION
            return self._decode(answer, self._correlation_id, frames.API_VERSIONS, version if known else 0)
        except (WireError, struct.error) as error:
            raise self._garbage(f"no Kafka: {error}") from error

    def _authenticate(self, deadline: Deadline) -> None:
        mechanism = self._config["sasl.mechanism"]
        answer = self.call(messages.SaslHandshakeRequest(mechanism), deadline)
        if answer.error_code:
            offered = ", ".join(answer.mechanisms) or "none"
            sentence = f"{self.address} does not offer SASL {mechanism}, only {offered}; see sasl.mechanism."
            raise ClientError(error_of(answer.error_code), sentence)
        lifetime_ms = 0
        exchange = sasl.exchange(self._config, self.address.host, deadline.left)
        said = next(exchange)
        while True:
            answer = self.call(messages.SaslAuthenticateRequest(said), deadline)
            if answer.error_code:
                why = (answer.error_message or error_of(answer.error_code).message).rstrip(".")
                raise ClientError(error_of(answer.error_code), f"{self.address} refused the credentials: {why}.")
            lifetime_ms = answer.session_lifetime_ms
            try:
                said = exchange.send(bytes(answer.auth_bytes))
            except StopIteration:
                break
        if lifetime_ms > 0:
            self._expires = time.monotonic() + lifetime_ms / 1000 * SESSION_SHARE

    def _authenticate_again(self, deadline: Deadline) -> None:
        """Renew the session before it ends; a broker takes that also when it has ended."""
        self._expires = None
        try:
            self._authenticate(deadline)
        except ClientError:
            self.close()
            raise

    def _lost(self, error: OSError) -> ClientError:
        self.close()
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return tls.refusal(self.address, error)
        hint = ""
        if not self.versions:
            hint = " before it said anything; see security.protocol"
        return unreachable(f"{self.address} closed the connection{hint} ({error.strerror or error}).")

    def _garbage(self, what: str) -> ClientError:
        self.close()
        return ClientError(Error.CORRUPT_MESSAGE, f"{self.address} sent {what}.", retriable=False)


def _at_least(seconds: float) -> float:
    return max(seconds, 0.001)  # 0 would mean not to wait at all


def _connect(address: Address, config: Config, deadline: Deadline) -> socket.socket:
    """Connect to the first of the name's addresses that accepts."""
    try:
        family = FAMILIES[config["broker.address.family"]]
        found = socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise unreachable(f"The name {address.host} of {address} is not known ({error}).") from error
    trouble: OSError | None = None
    for number, (family, kind, protocol, _, place) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        try:
            _prepare(sock, config)
            sock.settimeout(_at_least(deadline.left / (len(found) - number)))  # a silent one leaves time for the next
            sock.connect(place)
            return sock
        except OSError as error:
            sock.close()
            trouble = error
    if isinstance(trouble, TimeoutError):
        raise timed_out(f"{address} does not answer.") from trouble
    raise unreachable(f"{address} cannot be reached ({trouble and trouble.strerror}).") from trouble


def _prepare(sock: socket.socket, config: Config) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if config["socket.keepalive.enable"]:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, name in BUFFERS.items():
        if config[name]:
            sock.setsockopt(socket.SOL_SOCKET, option, config[name])

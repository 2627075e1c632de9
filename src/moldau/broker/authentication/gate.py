"""The gate: what a connection may say until it has authenticated (KIP-43, KIP-152, KIP-368).

A connection of a listener with SASL has a gate, to which the rim hands its frames instead of to the node. Each state
admits a few requests; any other ends the connection. Once somebody is through, the gate is gone, so an authenticated
request costs what a plain one does. It comes back when the session ends: then only another login is admitted. A client
may also authenticate again before, through the handler of SaslHandshake.

A failure is answered late (`connection.failed.authentication.delay.ms`), so that guessing is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from moldau.broker import audit
from moldau.broker.authentication.mechanisms import enabled, make_exchange
from moldau.broker.connection import Connection
from moldau.broker.wait import Wait
from moldau.sasl.outcome import Admitted, Denied, Exchange
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError

if TYPE_CHECKING:
    from moldau.broker.node import Node

HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
SMALLEST_FRAME = 8
SMALLEST_TOKEN = 0
NO_LIFETIME = 0


class State(Enum):
    """Where a login is."""

    FIRST = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    RAW = auto()  # tokens without headers, after version 0 of the handshake
    EXPIRED = auto()
    THROUGH = auto()


# The requests that each state admits.
ADMITS: dict[State, tuple[int, ...]] = {
    State.FIRST: (API_VERSIONS, HANDSHAKE),
    State.HANDSHAKE: (HANDSHAKE,),
    State.AUTHENTICATE: (AUTHENTICATE,),
    State.EXPIRED: (HANDSHAKE,),
}
Frame = Callable[..., list[Any]]  # make an answer, in parts: of a token, an error, its message and the session's life


class Gate:
    """The login of one connection."""

    __slots__ = ("_again", "_connection", "_exchange", "_mechanism", "_node", "state")

    def __init__(self, node: Node, connection: Connection) -> None:
        self.state = State.FIRST
        self._node = node
        self._connection = connection
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._again = False

    @property
    def bounds(self) -> tuple[int, int]:
        """The sizes of frames that are accepted now."""
        settings = self._node.settings
        largest = settings["socket.request.max.bytes" if self._again else "sasl.server.max.receive.size"]
        return (SMALLEST_TOKEN if self.state is State.RAW else SMALLEST_FRAME), largest

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Take one frame in the node's place; raises WireError where the connection is to end without an answer."""
        if self.state is State.THROUGH:  # since the rim asked for the gate
            self._node.receive(connection, frame)
        elif self.state is State.RAW:
            self._advance(bytes(frame), raw)
        else:
            self._receive_request(frame)

    def _receive_request(self, frame: memoryview) -> None:
        node, connection = self._node, self._connection
        try:
            key, version, correlation_id, client_id, position = frames.request_header(frame, node.max_elements)
            api = node.apis.get(key)
            if key in ADMITS[self.state] and (api is None or not api.low <= version <= api.high):
                raise frames.UnsupportedRequest(key, version, correlation_id, client_id)
        except frames.UnsupportedRequest as unsupported:
            if unsupported.key != API_VERSIONS or self.state is not State.FIRST:
                raise WireError(f"request key {unsupported.key} is not admitted before authentication") from None
            node.answer_unsupported(connection, unsupported)
            return

        def frame_of(response: Any) -> list[Any]:
            return frames.response_frame(key, version, correlation_id, response)

        if key not in ADMITS[self.state]:
            self._refuse(key, frame_of)
        elif key == API_VERSIONS:
            node.receive(connection, frame)
            self.state = State.HANDSHAKE
        else:
            connection.client_id = client_id
            request, _ = codec.decode_from(m.request_class(key), version, frame, position, node.max_elements)
            if key == HANDSHAKE:
                connection.write(frame_of(self.shake_hands(request.mechanism, version)))
            else:
                self._advance(bytes(request.auth_bytes), lambda *told: frame_of(response(version, *told)))

    def _refuse(self, key: int, frame_of: Frame) -> None:
        """Answer a request that is out of place within an exchange; everywhere else it just ends the connection."""
        if self.state is not State.AUTHENTICATE:
            raise WireError(f"request key {key} is not admitted before authentication")
        refusal = m.response_class(key)()
        if any(field.name == "error_code" for field in refusal.SCHEMA.fields):
            refusal.error_code = Error.ILLEGAL_SASL_STATE
        self._connection.write(frame_of(refusal))
        self._connection.closing = "a request out of place while it authenticates"

    def shake_hands(self, mechanism: str, version: int) -> m.SaslHandshakeResponse:
        """Begin an exchange, the first one or another one, if there is such a mechanism."""
        known = enabled(self._node.settings, self._connection.listener)
        if mechanism not in known:
            if self._connection.mechanism:
                raise WireError("it asked for a mechanism that is not enabled, to authenticate again")
            self._connection.closing = "it asked for a mechanism that is not enabled"
            return m.SaslHandshakeResponse(Error.UNSUPPORTED_SASL_MECHANISM, list(known))
        self._again = self._connection.mechanism != ""
        self._mechanism = mechanism
        self._exchange = make_exchange(self._node, self._connection, mechanism)
        next(self._exchange)
        self.state = State.AUTHENTICATE if version else State.RAW
        self._connection.gate = self
        return m.SaslHandshakeResponse(Error.NONE, list(known))

    def _advance(self, message: bytes, frame: Frame) -> None:
        """Hand a message to the mechanism."""
        if self._exchange is None:
            raise WireError("it goes on after it has failed to authenticate")
        if self._again and self._mechanism != self._connection.mechanism:
            raise WireError("a connection authenticates again with the mechanism that it had")
        try:
            self._connection.write(frame(self._exchange.send(message)))
        except StopIteration as end:
            self._admit(end.value, frame)
        except Denied as denied:
            self._deny(str(denied), frame)

    def _admit(self, admitted: Admitted, frame: Frame) -> None:
        connection, node = self._connection, self._node
        if self._again and connection.principal != admitted.principal:
            before, now = (name.replace(":", ".", 1) for name in (connection.principal, admitted.principal))
            self._deny(f"Cannot change principals during re-authentication from {before}: {now}", frame)
            return
        connection.principal, connection.by_token = admitted.principal, admitted.by_token
        connection.mechanism, connection.gate = self._mechanism, None
        self.state, self._exchange = State.THROUGH, None
        lifetime_ms = self._lifetime_ms(admitted)
        if connection.session is not None:
            node.waits.forget(connection.session)
            connection.session = None
        if lifetime_ms:
            connection.session = Wait(node.clock.monotonic_ms() + lifetime_ms, self._expire)
            node.waits.park(connection.session, lambda _: None)
        audit.logged_in(connection, self._mechanism)
        connection.on_through(connection)
        connection.write(frame(admitted.answer, Error.NONE, "", lifetime_ms))

    def _lifetime_ms(self, admitted: Admitted) -> int:
        node = self._node
        limit = node.settings.listener(self._connection.listener, "connections.max.reauth.ms", self._mechanism)
        lives = [limit] if limit > 0 else []
        if admitted.until_ms is not None:
            lives.append(max(1, admitted.until_ms - node.clock.wall_ms()))
        return min(lives, default=NO_LIFETIME)

    def _expire(self, expired: bool) -> bool | None:
        """Put the gate back: the session has ended."""
        if not expired:
            return None
        self._connection.session = None
        if self._connection.gate is None:  # not in the midst of another login
            self.state, self._again = State.EXPIRED, True
            self._connection.gate = self
        return True

    def _deny(self, reason: str, frame: Frame) -> None:
        """Answer a failure after a while, and then close."""
        connection, node, self._exchange = self._connection, self._node, None
        audit.failed_to_log_in(connection, self._mechanism, reason)
        delay_ms = node.settings["connection.failed.authentication.delay.ms"]
        wait = Wait(node.clock.monotonic_ms() + delay_ms, lambda expired: expired or None)
        pending = connection.park(wait, 0)

        def release(_: Any) -> None:
            connection.closing = "it failed to authenticate"
            connection.answer(pending, frame(b"", Error.SASL_AUTHENTICATION_FAILED, reason))

        node.waits.park(wait, release)


def response(
    version: int, token: bytes, error: Error = Error.NONE, reason: str = "", lifetime_ms: int = NO_LIFETIME
) -> m.SaslAuthenticateResponse:
    return m.SaslAuthenticateResponse(error, reason, token, lifetime_ms if version else NO_LIFETIME)


def raw(token: bytes, error: Error = Error.NONE, *_: Any) -> list[Any]:
    """Frame a token without a header; a failure has no answer but the end."""
    return [] if error else [len(token).to_bytes(4) + token]

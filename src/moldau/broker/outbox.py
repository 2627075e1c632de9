"""The requests that the node itself sends: to other brokers, and to controllers.

`Node.ask` puts a request into the outbox. Its `done` is called exactly once, and never within `ask`: with the response,
or with a `Lost` that says why there is none. A lost request may have been carried out.

A `Line` leads to one peer, over one connection at a time, which is opened for the first request. ApiVersions is asked
first, then the node authenticates if the peer's listener wants that, and again before the session ends. Then every
request goes out at once in the newest version that both sides know; answers come in order. If the
connection breaks, or an answer is overdue, everything on the line is lost. The line does not try again: a fetcher, a
voter and a forwarder each know better when and whom to ask next.

A `Network` connects and moves bytes: `rim/peers.py` for a real broker, the simulator's own for a simulated one.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from moldau import logs
from moldau.broker.rim.background import Inline
from moldau.sasl.outcome import LoginFailed
from moldau.wire import codec, frames, schema
from moldau.wire import messages as m
from moldau.wire.errors import Unwritable, WireError

if TYPE_CHECKING:
    from moldau.broker.node import Background

log = logs.get(__name__)

HELLO_VERSION = 3  # of ApiVersions: every Kafka since 2.4 knows it
MOST_WAITING = 1000  # requests on one line
QUICK_FENCING = "moldau.quick.fencing"  # whether nobody waits for a node that is gone
SESSION_SHARE = 0.8  # of a session is used before it is renewed (KIP-368)


class Peer(NamedTuple):
    """Where a listener of another node is, and what for it is asked.

    Kafka answers the requests of a connection one after the other. What may wait for long there has a connection of its
    own: a fetch, or markers, which wait until they are replicated, that is, for the next fetch.
    """

    host: str
    port: int
    purpose: str = ""
    is_controller: bool = False  # it is a listener of a controller

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Lost:
    """There is no response, for this reason. If it was refused, nobody listens there: the process is gone."""

    reason: str
    is_refused: bool = False


Done = Callable[[Any], None]
Login = Generator[bytes, bytes, None]  # the client's half of a SASL mechanism
LoginOf = Callable[["Peer"], "tuple[str, Login] | None"]  # the mechanism for a peer, if it wants one


@dataclass(slots=True, eq=False)
class Ask:
    """A request on its way."""

    request: Any
    done: Done
    over: bool = False

    def end(self, outcome: Any) -> None:
        if not self.over:
            self.over = True
            self.done(outcome)


class Network(Protocol):
    """Connects lines to their peers. None of these calls comes back to the line before it returns."""

    def connect(self, line: Line) -> None:
        """Open a connection; then call `line.open()`, or `line.lose(reason)`."""
        ...

    def write(self, line: Line) -> None:
        """Write the frames of `line.out`, which has grown, and empty it."""
        ...

    def close(self, line: Line) -> None:
        """End the connection, or the attempt to open one; the line hears no more of it."""
        ...


class Nowhere:
    """The network of a node that never asks."""

    def connect(self, line: Line) -> None:
        raise AssertionError("this node has no network")

    write = close = connect


class Line:
    """The way to one peer."""

    def __init__(self, peer: Peer, outbox: Outbox) -> None:
        self.peer = peer
        self.out: list[bytes] = []
        self._outbox = outbox
        self._network = outbox.network
        self._is_connected = False  # or about to be
        self._connections = 0  # another number for each connection, and for none
        self._versions: dict[int, tuple[int, int]] = {}  # what the peer knows, by API key; empty until it has said so
        self._is_ready = False  # versions are agreed, and we have authenticated
        self._renew_ms = inf  # when to authenticate again
        self._waiting: deque[Ask] = deque()
        self._in_flight: deque[tuple[int, int, Ask]] = deque()  # correlation id, version, request
        self._serial = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def put(self, ask: Ask) -> None:
        """Send a request as soon as the peer can take it."""
        self._waiting.append(ask)
        if not self._is_connected:
            self._is_connected = True
            self._network.connect(self)
        elif self._is_ready:
            self._send_waiting()

    def open(self) -> None:
        """Start on a new connection: ask which versions the peer knows."""
        self._connections += 1
        hello = m.ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
        self._send(Ask(hello, self._agree), HELLO_VERSION)
        self._network.write(self)

    def _agree(self, response: Any) -> None:
        if isinstance(response, Lost):
            return
        if response.error_code:
            raise WireError(f"ApiVersions was answered with error {response.error_code}")
        self._versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        self._log_in()

    def _log_in(self) -> None:
        """Authenticate where the peer wants it; until that is done nothing else is sent."""
        login = self._outbox.login(self.peer)
        if login is None:
            self._is_ready = True
            self._send_waiting()
            return
        mechanism, exchange = login
        self._say(m.SaslHandshakeRequest(mechanism), partial(self._shook, exchange))

    def renew(self, now_ms: float) -> None:
        """Authenticate again if the session ends soon."""
        if self._is_ready and self._renew_ms <= now_ms:
            self._is_ready, self._renew_ms = False, inf
            self._log_in()

    def _say(self, request: Any, done: Done) -> None:
        version = self._version(request.SCHEMA)
        if version is None:
            raise WireError("it does not know SASL as we do")
        self._send(Ask(request, done), version)
        self._network.write(self)

    def _shook(self, exchange: Login, response: Any) -> None:
        if isinstance(response, Lost):
            return
        if response.error_code:
            raise WireError(f"it does not offer our SASL mechanism, only {', '.join(response.mechanisms) or 'none'}")
        connection = self._connections

        def begin() -> bytes:
            return next(exchange) if self._connections == connection else b""

        def begun(message: Any) -> None:
            if self._connections != connection:
                return
            if isinstance(message, LoginFailed):
                log.warning("cannot log in at a peer", peer=str(self.peer), reason=str(message))
                self.hang_up(f"cannot log in: {message}")
            elif isinstance(message, Exception):
                raise message
            else:
                self._say(m.SaslAuthenticateRequest(message), partial(self._proved, exchange))

        self._outbox.logins.submit(begin, begun)

    def _proved(self, exchange: Login, response: Any) -> None:
        if isinstance(response, Lost):
            return
        if response.error_code:
            raise WireError(f"it refuses our credentials: {response.error_message}")
        try:
            said = exchange.send(bytes(response.auth_bytes))
        except StopIteration:
            lifetime_ms = response.session_lifetime_ms
            self._renew_ms = self._outbox.now_ms + SESSION_SHARE * lifetime_ms if lifetime_ms else inf
            self._is_ready = True
            self._send_waiting()
        except LoginFailed as error:
            raise WireError(f"our login failed: {error}") from None
        else:
            self._say(m.SaslAuthenticateRequest(said), partial(self._proved, exchange))

    def _send_waiting(self) -> None:
        while self._waiting:
            ask = self._waiting.popleft()
            version = self._version(ask.request.SCHEMA)
            try:
                if version is None:
                    raise Unwritable("no version that both sides know")
                self._send(ask, version)
            except Unwritable as error:
                self._outbox.refuse(ask, f"{self.peer} cannot be sent {ask.request.SCHEMA.name}: {error}")
        self._network.write(self)

    def _version(self, request: schema.Message) -> int | None:
        """Return the newest version that both sides know."""
        low, high = request.versions
        their_low, their_high = self._versions.get(request.key, (0, -1))
        version = min(high, their_high)
        return version if version >= max(low, their_low) else None

    def _send(self, ask: Ask, version: int) -> None:
        frame = frames.request_frame(ask.request, version, self._serial, self._outbox.client_id)
        self._in_flight.append((self._serial, version, ask))
        self._serial += 1
        self.out.append(frame)

    def receive(self, frame: memoryview) -> None:
        """Take a response without its length. Raises WireError if it makes no sense: the rim then loses the line."""
        if not self._in_flight:
            raise WireError("a response came that nobody waits for")
        serial, version, ask = self._in_flight[0]
        key = ask.request.SCHEMA.key
        answered, position = frames.response_header(key, version, frame)
        if answered != serial:
            raise WireError(f"response {answered} came where {serial} was due")
        response = codec.decode(m.response_class(key), version, frame, position)
        self._in_flight.popleft()
        ask.end(response)

    def lose(self, reason: str, *, is_refused: bool = False) -> None:
        """End every request: the connection is gone, or was refused."""
        lost = Lost(f"{self.peer}: {reason}", is_refused)
        asks = [*(ask for _, _, ask in self._in_flight), *self._waiting]
        self._waiting.clear()
        self._in_flight.clear()
        self.out.clear()
        self._versions = {}
        self._is_connected = self._is_ready = False
        self._connections += 1
        self._renew_ms = inf
        for ask in asks:
            ask.end(lost)

    def hang_up(self, reason: str) -> None:
        """Close the connection from our side."""
        if self._is_connected:
            self._network.close(self)
        self.lose(reason)


class Outbox:
    """All lines of a node, and when their answers are due."""

    def __init__(self, network: Network, client_id: str, login: LoginOf = lambda _: None) -> None:
        self.network = network
        self.client_id = client_id
        self.login = login
        self.logins: Background = Inline()  # where logins begin: Kerberos asks its KDC then, which takes time
        self.now_ms = 0.0
        self.lines: dict[Peer, Line] = {}
        self._refusals: list[tuple[Ask, str]] = []
        self._due: list[tuple[float, int, Ask, Line]] = []
        self._serial = 0

    def put(self, peer: Peer, ask: Ask, deadline_ms: float) -> None:
        """Send a request to a peer; it is lost at its deadline, with all that is on the same line."""
        line = self.lines.get(peer)
        if line is None:
            line = self.lines[peer] = Line(peer, self)
        if len(line) >= MOST_WAITING:
            self.refuse(ask, f"{peer}: {MOST_WAITING} requests wait already")
            return
        self._serial += 1
        heapq.heappush(self._due, (deadline_ms, self._serial, ask, line))
        line.put(ask)

    def refuse(self, ask: Ask, reason: str) -> None:
        """Lose a request with the next tick, since it is not to hear of it while it is asked."""
        self._refusals.append((ask, reason))

    def hang_up(self, address: tuple[str, int], reason: str) -> None:
        """Lose everything that waits for one node."""
        for peer, line in list(self.lines.items()):
            if (peer.host, peer.port) == address:
                line.hang_up(reason)

    def tick(self, now_ms: float) -> None:
        """End what was refused, hang up where an answer is overdue, and renew sessions."""
        self.now_ms = now_ms
        for line in self.lines.values():
            line.renew(now_ms)
        refusals, self._refusals = self._refusals, []
        for ask, reason in refusals:
            ask.end(Lost(reason))
        while self._due and (self._due[0][0] <= now_ms or self._due[0][2].over):
            _, _, ask, line = heapq.heappop(self._due)
            if not ask.over:
                line.hang_up("no answer in time")

    def next_deadline_ms(self) -> float:
        """When `tick` is next needed."""
        if self._refusals:
            return 0.0
        return self._due[0][0] if self._due else inf

    def close(self) -> None:
        """Lose everything: the node stops."""
        for line in self.lines.values():
            line.hang_up("this node stops")
        self.tick(inf)

"""The asyncio rim: listening sockets, limits, ticks and the graceful stop. transport.py moves the bytes."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.connection import Connection
from moldau.broker.counters import Counters
from moldau.broker.rim.transport import SHARED_SIZE, Channel
from moldau.machines.metadata.metering import Rate

if TYPE_CHECKING:
    from moldau.broker.node import Clock, Node
    from moldau.broker.rim.entrances import Entrance
    from moldau.broker.rim.listeners import Listener
    from moldau.broker.rim.tls import Handshakes

log = logs.get(__name__)

TICK_LIMIT_MS = 100.0
ACCEPTS = 64  # connections that are accepted in one wake-up
RETRY_ACCEPT_S = 0.1
SPARE_BUFFERS = 4
SPARE_SIZE = 4 * 1024 * 1024
SWEEPS = 8  # how often idle connections are looked for within the time that they may be idle
STOP_MS = 5000.0
MOST_ADDRESSES = 10_000  # whose rate of new connections is remembered
BUFFERS = (
    ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
    ("socket.send.buffer.bytes", socket.SO_SNDBUF),
)
LIMIT, CREATION_RATE = "max.connections", "max.connection.creation.rate"
UNLIMITED = (1 << 31) - 1
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@cache
def _by_address(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`: the most connections by address."""
    pairs = (pair.rpartition(":") for pair in text.split(",") if pair)
    return {host.strip(): int(number) for host, _, number in pairs}


class Server:
    """Serves one node on its listeners. All its methods run on the loop's thread."""

    def __init__(self, node: Node, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.node = node
        self.loop = loop
        self.max_frame: int = node.settings["socket.request.max.bytes"]
        self.counters = Counters()
        self.buffer = memoryview(bytearray(SHARED_SIZE))
        self.spare: list[bytearray] = []
        self.ready: deque[Channel] = deque()
        self.sweeps = 0
        self.channels: dict[int, Channel] = {}
        self._clock = clock
        self._ids = count(1)
        self._per_ip: Counter[str] = Counter()
        self._quota = logs.Quota()
        self._sockets: dict[socket.socket, Listener] = {}
        self.entrances: dict[str, Entrance] = {}  # of the listeners with TLS or SASL
        self._handshakes: Handshakes | None = None
        self.ip_limit: Callable[[str], float | None] | None = None  # how many connections a second an address may open
        self._ip_rates: dict[str, Rate] = {}
        self._creation_rates: dict[str, Rate] = {}  # by listener; "" is of all of them
        self._paused: set[str] = set()  # listeners that accept nobody until their rate is below its limit
        self._per_listener: Counter[str] = Counter()
        self._strangers: dict[str, dict[int, asyncio.TimerHandle]] = {}  # who has not authenticated yet, by listener
        self._accepting = False
        self._let_in = False  # clients and brokers may come; controllers always may
        self._turns: list[Channel] = []
        self._tick_at = float("inf")
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopped = False

    @property
    def handshakes(self) -> Handshakes:
        if self._handshakes is None:
            from moldau.broker.rim.tls import Handshakes  # late: most brokers have no certificates

            self._handshakes = Handshakes(self.loop)
        return self._handshakes

    # Listening.

    def listen(self, sock: socket.socket, listener: Listener) -> None:
        """Take over a bound socket; nobody can connect to it before `start`, or `open` for clients of who must join."""
        settings = self.node.settings
        sock.setblocking(False)
        for name, option in BUFFERS:
            if settings[name] > 0:  # inherited by the connections
                sock.setsockopt(socket.SOL_SOCKET, option, settings[name])
        self._sockets[sock] = listener

    def start(self, accepting: bool = True) -> None:
        """Keep the node's time, and accept connections; who joins a cluster does so when it is let in (`accept`)."""
        self._let_in = accepting
        self.open(only_controllers=not accepting)
        self._set_accepting(True)
        self._tick()
        self._sweep()

    def open(self, *, only_controllers: bool = False) -> None:
        """Let the system take connections. Who is refused before knows that the process it looks for is gone."""
        for sock, listener in self._sockets.items():
            if listener.is_controller or not only_controllers:
                sock.listen(self.node.settings["socket.listen.backlog.size"])

    def accept(self) -> None:
        self._set_accepting(False)
        self._let_in = True
        self._set_accepting(True)

    def _set_accepting(self, accepting: bool) -> None:
        if accepting is self._accepting:
            return
        self._accepting = accepting
        for sock, listener in self._sockets.items():
            if not accepting:
                self.loop.remove_reader(sock)
            elif self._let_in or listener.is_controller:
                self.loop.add_reader(sock, self._accept, sock, listener)

    def _accept(self, listening: socket.socket, listener: Listener) -> None:
        for _ in range(ACCEPTS):
            if len(self.channels) >= self.node.settings[LIMIT]:
                # As Kafka does: who comes now waits in the backlog until a connection ends.
                self._refused("max.connections", "no more connections are accepted")
                self._set_accepting(False)
                return
            if self._per_listener[listener.name] >= self.node.settings.listener(listener.name, LIMIT):
                self._refused(f"max.connections of {listener.name}", "no more connections are accepted")
                self.loop.remove_reader(listening)
                return
            if (
                len(self._strangers.get(listener.name, ()))
                >= self.node.settings["moldau.authentication.max.connections"]
            ):
                # They wait in the backlog, and those of other listeners do not.
                self._refused("moldau.authentication.max.connections", "too many have yet to authenticate")
                self.loop.remove_reader(listening)
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                self._accept_later(error)
                return
            self._admit(sock, address, listener)
            if pause_ms := self._creation_throttle_ms(listener.name):
                # As Kafka does: who comes now waits in the backlog until the rate is below its limit.
                self._refused("max.connection.creation.rate", "too many new connections", listener=listener.name)
                self.loop.remove_reader(listening)
                self._paused.add(listener.name)
                self.loop.call_later(pause_ms / 1000, self._resume, listener.name)
                return

    def _resume(self, listener: str) -> None:
        self._paused.discard(listener)
        self._watch_again(listener)

    def _creation_throttle_ms(self, listener: str) -> float:
        """Count a new connection; returns how long the listener must not accept another one."""
        settings = self.node.settings
        limits = {"": settings[CREATION_RATE], listener: settings.listener(listener, CREATION_RATE)}
        return max(
            self._throttle_ms(self._creation_rates, name, limit) if limit < UNLIMITED else 0.0
            for name, limit in limits.items()
        )

    def _throttle_ms(self, rates: dict[str, Rate], name: str, limit: float) -> float:
        settings, now_ms = self.node.settings, self._clock.monotonic_ms()
        if name not in rates:
            rates[name] = Rate(settings["quota.window.num"], settings["quota.window.size.seconds"] * 1000.0)
        rates[name].record(1, now_ms)
        return rates[name].throttle_ms(limit, now_ms)

    def _accept_later(self, error: OSError) -> None:
        if error.errno not in NO_DESCRIPTORS:
            raise error
        self._refused("descriptors", "cannot accept; raise the limit of open files (ulimit -n)", error=error.strerror)
        self._set_accepting(False)
        self._timers["accept"] = self.loop.call_later(RETRY_ACCEPT_S, self._accept_again)

    def _accept_again(self) -> None:
        del self._timers["accept"]
        self._set_accepting(True)

    def _admit(self, sock: socket.socket, address: tuple[Any, ...], listener: Listener) -> None:
        host = address[0]
        settings = self.node.settings
        limits = _by_address(settings["max.connections.per.ip.overrides"])
        if self._per_ip[host] >= (limits[host] if host in limits else settings["max.connections.per.ip"]):
            self._refused("max.connections.per.ip", "too many connections", peer=host)
            sock.close()
            return
        if self.ip_limit is not None and (limit := self.ip_limit(host)) is not None:
            throttle_ms = self._ip_throttle_ms(host, limit)
            if throttle_ms:
                # As Kafka does: it is closed when it may come again, so that who tries at once is slowed down.
                self._refused("connection_creation_rate", "too many new connections", peer=host)
                self.loop.call_later(throttle_ms / 1000, sock.close)
                return
        self._per_ip[host] += 1
        self._per_listener[listener.name] += 1
        self.counters.accepted += 1
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
        connection = Connection(next(self._ids), listener.name, peer, is_controller=listener.is_controller)
        entrance = self.entrances.get(listener.name)
        if entrance is None:
            channel = Channel(self, sock, connection, host)
        else:
            connection.on_through = self._let_through
            channel = entrance.open(self, sock, connection, host)
            self._mistrust(channel)
        connection.on_ready = channel.ready
        self.channels[connection.id] = channel
        self.node.connect(connection)

    def _ip_throttle_ms(self, host: str, limit: float) -> float:
        """Count a new connection of an address, unless it comes too early."""
        if len(self._ip_rates) >= MOST_ADDRESSES:
            self._ip_rates.pop(next(iter(self._ip_rates)))
        throttle_ms = self._throttle_ms(self._ip_rates, host, limit)
        if throttle_ms:
            self._ip_rates[host].record(-1, self._clock.monotonic_ms())
        return throttle_ms

    def _mistrust(self, channel: Channel) -> None:
        """Close a connection that does not authenticate in time."""
        timeout_ms = self.node.settings["moldau.authentication.timeout.ms"]
        timer = self.loop.call_later(timeout_ms / 1000, self._give_up, channel)
        self._strangers.setdefault(channel.connection.listener, {})[channel.connection.id] = timer

    def _give_up(self, channel: Channel) -> None:
        self._refused("moldau.authentication.timeout.ms", "did not authenticate in time", peer=channel.address)
        channel.close("it did not authenticate in time")

    def _let_through(self, connection: Connection) -> None:
        """Trust a connection, and accept another one in its place if there were too many of them."""
        timer = self._strangers.get(connection.listener, {}).pop(connection.id, None)
        if timer is not None:
            timer.cancel()
            self._watch_again(connection.listener)

    def _watch_again(self, name: str) -> None:
        for sock, listener in self._sockets.items() if name not in self._paused else ():
            if listener.name == name and self._accepting and (self._let_in or listener.is_controller):
                self.loop.add_reader(sock, self._accept, sock, listener)

    def _refused(self, why: str, text: str, **fields: Any) -> None:
        self.counters.refused[why] += 1
        if (kept := self._quota.admit(fields.get("peer", why))) is not None:
            log.warning(text, why=why, **fields, **({"kept_back": kept} if kept else {}))

    def report_refusal(self, channel: Channel, reason: str, looks: str) -> None:
        """Log one line about input that is not a Kafka request."""
        self.counters.refused["bad input"] += 1
        if (kept := self._quota.admit(channel.address)) is not None:
            fields: dict[str, Any] = {"peer": channel.connection.peer, "reason": reason}
            if looks:
                fields["hint"] = looks
            if kept:
                fields["kept_back"] = kept
            log.warning("closed a connection that sent bad input", **fields)

    def forget(self, channel: Channel, reason: str) -> None:
        """Forget a connection that has ended."""
        connection = channel.connection
        del self.channels[connection.id]
        self._per_listener[connection.listener] -= 1
        self._per_ip[channel.address] -= 1
        if not self._per_ip[channel.address]:
            del self._per_ip[channel.address]
        log.debug("closed", peer=connection.peer, reason=reason)
        self._let_through(connection)
        if self.node.settings.listener(connection.listener, LIMIT) < UNLIMITED:
            self._watch_again(connection.listener)
        self.node.disconnect(connection)
        if not self._accepting and not self._stopped and "accept" not in self._timers:
            self._set_accepting(True)

    # Turns. An event of one connection (a produce) ends the wait of others (fetches): they are collected in `ready`
    # and written when the event has been dealt with, in the same round of the loop and never recursively.

    def settle(self) -> None:
        """Go on with the connections that the node called ready."""
        # One by one: should a fault of ours end this, the others are still there for the next event.
        while self.ready:
            self.ready.popleft().go_on()

    def heard_peer(self) -> None:
        """Go on after another node or the disk has answered: something may be due earlier than before."""
        self.settle()
        self.wake_by(self._clock.monotonic_ms() + self.node.idle_ms())

    def turn_later(self, channel: Channel) -> None:
        """Serve the other frames of a connection after the others had their turn."""
        if not channel.queued:
            channel.queued = True
            if not self._turns:
                self.loop.call_soon(self._take_turns)
            self._turns.append(channel)

    def _take_turns(self) -> None:
        self.ready.extend(self._turns)
        self._turns.clear()
        self.settle()

    def recycle(self, view: memoryview) -> None:
        """Keep the buffer of a large frame for the next one, within bounds."""
        buffer = view.obj
        if len(self.spare) < SPARE_BUFFERS and len(view) <= SPARE_SIZE and isinstance(buffer, bytearray):
            self.spare.append(buffer)

    # Time.

    def wake_by(self, deadline_ms: float) -> None:
        """Tick at this time of the node's clock at the latest."""
        if deadline_ms < self._tick_at:
            self._schedule_tick(deadline_ms - self._clock.monotonic_ms())

    def _schedule_tick(self, delay_ms: float) -> None:
        delay_ms = min(max(delay_ms, 0.0), TICK_LIMIT_MS)
        self._tick_at = self._clock.monotonic_ms() + delay_ms
        if "tick" in self._timers:
            self._timers["tick"].cancel()
        self._timers["tick"] = self.loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._tick_at = float("inf")
        delay_ms = TICK_LIMIT_MS
        try:
            delay_ms = self.node.tick()
            self.settle()
        finally:
            self._schedule_tick(min(delay_ms, self._tick_at - self._clock.monotonic_ms()))

    def post(self, call: Callable[[], None]) -> None:
        """Run a call from another thread here, and write what it made ready."""
        self.loop.call_soon_threadsafe(self._posted, call)

    def _posted(self, call: Callable[[], None]) -> None:
        call()
        self.heard_peer()

    def _sweep(self) -> None:
        """Close what made no progress for too long. One pass over all connections is cheap and rare."""
        self.sweeps += 1
        oldest = self.sweeps - SWEEPS - 1
        for channel in [c for c in self.channels.values() if c.active <= oldest and c.connection.wait is None]:
            self.counters.refused["connections.max.idle.ms"] += 1
            channel.close("idle for connections.max.idle.ms")
        self.settle()
        idle_ms = self.node.settings["connections.max.idle.ms"]
        if idle_ms >= 0:
            self._timers["sweep"] = self.loop.call_later(idle_ms / 1000 / SWEEPS, self._sweep)

    # The end.

    async def stop(self) -> None:
        """Accept no more, let the node answer what waits and close its files, write what is left."""
        reason = "the broker stops"
        self._stopped = True
        self._set_accepting(False)
        for sock in self._sockets:
            sock.close()
        for timer in self._timers.values():
            timer.cancel()
        for channel in self.channels.values():
            channel.connection.closing = reason
        # Its work is on files that stop() closes.
        await self._until(lambda: not self.node.background.pending)
        self.node.stop()
        self.settle()
        for channel in list(self.channels.values()):
            if channel.connection.wait is not None:
                channel.close(reason)
            channel.flush()
        await self._until(lambda: not self.channels)
        for channel in list(self.channels.values()):
            channel.close(reason)

    async def _until(self, condition: Callable[[], bool]) -> None:
        # By the node's clock: the loop's own stands still while stop() syncs files.
        deadline_ms = self._clock.monotonic_ms() + STOP_MS
        while not condition() and self._clock.monotonic_ms() < deadline_ms:
            await asyncio.sleep(0.002)

"""The network between the nodes of a cluster, and from clients to them: a TCP proxy in front of every listener.

Nodes and clients know a listener by its advertised address alone, which is that of the proxy. All of them connect to
the same one, so the proxy tells them apart by the client id of their first request: brokers and controllers, those of
Apache Kafka too, have ids that are made of their number. This needs no rights and no address for each pair of nodes.

A way is a pair (from, to). What is done to it concerns all bytes that go this way: the requests of connections that
`from` has opened, and the answers on those that `to` has opened. Held bytes are not lost, since TCP would send them
again: they arrive after `heal`, and so does the end of a connection. Until then neither side learns of the other, as
with a cable that was pulled.

While a node refuses connections, so does its proxy: that nobody listens is how others see that a process is gone.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

CLIENTS = 0  # stands for all clients in a way, as a node's number does for a node
CHUNK = 64 * 1024
LOOK_S = 0.02  # how often a proxy looks whether its node listens again
# When a proxy looks whether its node still listens: a process that ends may close connections before its listener.
LOOKS_AFTER_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
CALL_S = 30.0
HOST = "127.0.0.1"
NODE = re.compile(rb"(?:broker-|raft-client-)?(\d+)(?:-.*)?")  # client ids of nodes: Moldau's, and all of Kafka's
HEADER = struct.Struct(">ihhih")  # size, API key, version, correlation id, length of the client id

Way = tuple[int, int]


@dataclass(slots=True, eq=False)
class Connection:
    """One connection through a proxy: who opened it, to whom, and its two ends."""

    source: int
    target: int
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Network:
    """All proxies, on a thread of their own. Its methods may be called from any thread, and take effect at once."""

    def __init__(self) -> None:
        self._held: set[Way] = set()
        self._delays: dict[Way, float] = {}
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keepers: list[socket.socket] = []
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def open(self, node: int, port: int) -> int:
        """Put a proxy in front of a port of a node, and return the port that others are to be told."""
        keeper = shared_socket(0)  # it never listens: it keeps the port while the proxy refuses connections
        self._keepers.append(keeper)
        address = keeper.getsockname()[1]
        self._call(lambda: self._start(Proxy(self, node, port, address).run()))
        return address

    def hold(self, ways: Iterable[Way]) -> None:
        """Let nothing pass on these ways until `heal`."""
        more = set(ways)
        self._call(lambda: self._held.update(more))

    def slow(self, ways: Iterable[Way], delay_s: float) -> None:
        """Let every piece of up to 64 KB take so long on these ways until `heal`."""
        more = dict.fromkeys(ways, delay_s)
        self._call(lambda: self._delays.update(more))

    def reset(self, ways: Iterable[Way]) -> None:
        """Break the connections whose requests go these ways; new ones can be opened."""
        some = set(ways)
        self._call(lambda: [one.abort() for one in self._connections if (one.source, one.target) in some])

    def heal(self) -> None:
        """Let everything pass again, what was held first."""

        def heal() -> None:
            self._held.clear()
            self._delays.clear()
            self._changed.set()
            self._changed = asyncio.Event()

        self._call(heal)

    def close(self) -> None:
        """End all proxies and connections."""

        async def end() -> None:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)  # transports close with the next turn of the loop

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(CALL_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_S)
        self._loop.close()
        for keeper in self._keepers:
            keeper.close()

    def _call(self, what: Callable[[], Any]) -> None:
        """Run something on the loop's thread, and wait for it."""

        async def run() -> None:
            what()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(CALL_S)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def passage(self, way: Way) -> None:
        """Wait until something may pass."""
        while way in self._held:
            await self._changed.wait()
        if delay := self._delays.get(way):
            await asyncio.sleep(delay)

    async def join(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Find out who has connected, connect to the node, and carry bytes both ways until the end."""
        try:
            header = await reader.readexactly(HEADER.size)
            client_id = await reader.readexactly(max(0, HEADER.unpack(header)[-1]))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        match = NODE.fullmatch(client_id)
        connection = Connection(int(match[1]) if match else CLIENTS, proxy.node, [writer])
        self._connections.add(connection)
        try:
            await self.passage((connection.source, connection.target))
            try:
                answers, requests = await asyncio.open_connection(HOST, proxy.port)
            except OSError:
                await proxy.look()
                return
            connection.writers.append(requests)
            requests.write(header + client_id)
            there, back = (connection.source, connection.target), (connection.target, connection.source)
            await asyncio.gather(self.carry(reader, requests, there), self.carry(answers, writer, back, proxy.look))
        finally:
            self._connections.discard(connection)
            for one in connection.writers:
                one.close()

    async def carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        way: Way,
        at_end: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Carry bytes one way. The end of the one connection is the end of the other, as soon as it may pass.

        If the receiver is gone, the way back ends, which carries that news.
        """
        while True:
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""
            if not data and at_end is not None:
                await at_end()
            await self.passage(way)
            if not data:
                writer.close()
                return
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return


class Proxy:
    """Listens in place of one port of a node, as long as the node listens there."""

    def __init__(self, network: Network, node: int, port: int, address: int) -> None:
        self.network = network
        self.node = node
        self.port = port
        self.address = address
        self._server: asyncio.Server | None = None
        self._gone = asyncio.Event()
        self._is_watched = False

    async def run(self) -> None:
        """Open and close the listener, as the node does."""
        try:
            while True:
                while not await self.is_listening():
                    await asyncio.sleep(LOOK_S)
                self._server = await asyncio.start_server(self._accept, sock=shared_socket(self.address))
                self._gone.clear()
                await self._gone.wait()
        finally:
            self._close()

    async def is_listening(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(HOST, self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def look(self) -> None:
        """A connection has ended: refuse others before anybody learns of it, if the process is gone."""
        await self.close_if_gone()
        if not self._is_watched:
            self._is_watched = True
            self.network._start(self._watch())

    async def _watch(self) -> None:
        """Look again and again for a while: the process may be about to go."""
        for pause_s in LOOKS_AFTER_S:
            await asyncio.sleep(pause_s)
            await self.close_if_gone()
        self._is_watched = False

    async def close_if_gone(self) -> None:
        server = self._server
        if server is not None and not await self.is_listening() and self._server is server:
            self._close()
            self._gone.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.network._start(self.network.join(self, reader, writer))

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def shared_socket(port: int) -> socket.socket:
    """Bind a port that sockets of ours share: only the one that listens gets connections."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((HOST, port))
    return made

"""Requests of the node over real sockets: to a broker, and to peers that refuse, hang up, keep silent or lie."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from moldau.broker.outbox import Ask, Lost, Outbox, Peer
from moldau.broker.rim.peers import FIRST_SIZE, Peers
from moldau.testing import broker
from moldau.wire import messages as m

MOST = 1 << 20
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Asking:
    """An outbox with its rim on a running loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.settled = 0
        self.peers = Peers(self.loop, self._settle, MOST)
        self.outbox = Outbox(self.peers, "broker-1")

    def _settle(self) -> None:
        self.settled += 1

    def ask(self, peer: Peer, request: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        self.outbox.put(peer, Ask(request, future.set_result), float("inf"))
        assert not future.done()
        return future


def run(scenario: Callable[[Asking], Awaitable[None]], loop: str = "uvloop") -> None:
    async def main() -> None:
        asking = Asking()
        try:
            await asyncio.wait_for(scenario(asking), 30)
        finally:
            asking.outbox.close()

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


@asynccontextmanager
async def peer_that(serve: Serve) -> AsyncIterator[Peer]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Peer(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_broker_answers_pipelined_requests_in_order_also_large_ones(loop: str) -> None:
    async def scenario(asking: Asking) -> None:
        topics = [m.CreateTopicsRequest_CreatableTopic(f"topic-{'x' * 200}-{n}", 1, 1, [], []) for n in range(300)]
        create = asking.ask(peer, m.CreateTopicsRequest(topics))
        answers = [asking.ask(peer, m.MetadataRequest(None)) for _ in range(20)]
        cluster = asking.ask(peer, m.DescribeClusterRequest())
        assert len((await create).topics) == 300
        for answer in await asyncio.gather(*answers):
            assert len(answer.topics) == 300  # far more than the first buffer holds
        assert len(repr(answers[0].result())) > FIRST_SIZE
        assert (await cluster).brokers[0].port == running.port
        assert asking.settled

    with broker() as running:
        peer = Peer("127.0.0.1", running.port)
        run(scenario, loop)


def test_nobody_there_is_said_so() -> None:
    async def scenario(asking: Asking) -> None:
        lost = await asking.ask(peer, m.MetadataRequest([]))
        assert isinstance(lost, Lost) and "refused" in lost.reason.lower()

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # bound, but it does not listen
        peer = Peer(*sock.getsockname())
        run(scenario)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.close()


async def claim_a_gigabyte(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write((1 << 30).to_bytes(4) + b"x" * 100)


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def claim_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"\0\0\0\0")


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (hang_up, "closed by the peer"),
        (claim_a_gigabyte, "socket.request.max.bytes"),
        (speak_http, "socket.request.max.bytes"),
        (claim_nothing, "socket.request.max.bytes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_peer_that_fails_loses_all_requests(serve: Serve, reason: str) -> None:
    async def scenario(asking: Asking) -> None:
        async with peer_that(serve) as peer:
            for lost in await asyncio.gather(*(asking.ask(peer, m.MetadataRequest([])) for _ in range(3))):
                assert reason in lost.reason

    run(scenario)


def test_a_silent_peer_is_hung_up_on_in_time() -> None:
    async def scenario(asking: Asking) -> None:
        closed = asyncio.Event()

        async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while await reader.read(1000):
                    pass
            except ConnectionError:
                pass
            closed.set()
            writer.close()

        async with peer_that(keep_silent) as peer:
            answer: asyncio.Future[Any] = asking.loop.create_future()
            asking.outbox.put(peer, Ask(m.MetadataRequest([]), answer.set_result), 5.0)
            await asyncio.sleep(0.05)
            asking.outbox.tick(6.0)
            assert "no answer in time" in (await answer).reason
            await closed.wait()

    run(scenario)

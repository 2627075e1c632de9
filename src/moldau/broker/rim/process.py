"""A broker as a process: from options to settings, node and server, and to a clean end.

Imports are late on purpose: a broker is ready in a fifth of a second, and a wrong option is told in less.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau import logs
from moldau.broker import audit
from moldau.settings import SettingError, Settings, read_properties

if TYPE_CHECKING:
    import asyncio

    from moldau.broker.rim.listeners import Listener
    from moldau.broker.rim.server import Server
    from moldau.machines.metadata.cluster import Endpoint

log = logs.get(__name__)

OK, FAILED, MISUSED = 0, 1, 2
HAND_OVER_S = 60.0
RESIGN_S = 2.0
LEADERLESS_S = 2.5  # how long who stops waits for a controller to be elected
LOOK_S, LOOK_AROUND_S = 0.01, 0.1
PLAINTEXT = 0  # the security protocol's number in the metadata
PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class UserError(Exception):
    """A mistake of the user or of the surroundings: one sentence that says what to do."""


class Options(NamedTuple):
    """What `moldau broker` was asked for."""

    config: str | None = None
    overrides: tuple[str, ...] = ()
    data_dir: str | None = None
    ephemeral: bool = False
    listen: str | None = None
    metrics_port: int | None = None
    log_format: str = "text"
    log_level: str = "info"
    stop_with_stdin: bool = False


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


def run(options: Options) -> int:
    """Run a broker until it is told to stop; returns the exit code."""
    gc.disable()  # until it is ready: what a start makes is no garbage
    logs.set_up(options.log_format, options.log_level)
    # Until the loop has its own handlers a signal is an exception, so that a temporary directory is removed.
    signal.signal(signal.SIGTERM, _leave)
    try:
        with data_directory(options) as data_dir:
            serve(load_settings(options, data_dir), options)
    except SettingError as error:
        return complain(str(error), MISUSED)
    except UserError as error:
        return complain(str(error), FAILED)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        gc.enable()
    return OK


def _leave(number: int, _: Any) -> None:
    raise SystemExit(128 + number)


def complain(sentence: str, code: int) -> int:
    """Write one line to stderr, and return the exit code."""
    print(f"moldau broker: {sentence}", file=sys.stderr)  # noqa: T201
    return code


@contextlib.contextmanager
def data_directory(options: Options) -> Iterator[str | None]:
    """Yield the directory that was asked for; a temporary one is gone afterwards."""
    if not options.ephemeral:
        yield options.data_dir
        return
    if options.data_dir:
        raise SettingError("--ephemeral", None, "it has a directory of its own; leave out --data-dir")
    import shutil
    import tempfile

    path = tempfile.mkdtemp(prefix="moldau-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def load_settings(options: Options, data_dir: str | None) -> Settings:
    """Merge the file, the options of the command line and `--set`: the later wins."""
    from moldau.broker.rim import listeners

    given: dict[str, str] = {}
    if options.config is not None:
        given |= read_config(options.config)
    if options.listen is not None:
        protocol, _, address = options.listen.rpartition("://")
        given["listeners"] = f"{protocol or 'PLAINTEXT'}://{listeners.join(*listeners.split(address))}"
    if data_dir is not None:
        given["log.dirs"] = os.path.abspath(data_dir)
    return Settings.load(given, options.overrides)


def read_config(path: str) -> dict[str, str]:
    """Read the pairs of a properties file; raises SettingError."""
    try:
        return read_properties(path)
    except OSError as error:
        raise SettingError("--config", path, f"{error.strerror}. Name a file in Java's properties format.") from None


def serve(settings: Settings, options: Options) -> None:
    """Bind, start the node, accept connections, and stop cleanly on a signal."""
    import uvloop

    from moldau.broker.rim import listeners

    for warning in settings.warnings:
        log.warning(warning)
    audit.set_up(settings)
    try:
        opened = listeners.open_listeners(settings)
    except listeners.ListenError as error:
        raise UserError(str(error)) from None
    raise_descriptor_limit()
    loop = uvloop.new_event_loop()
    loop.set_exception_handler(report_fault)
    try:
        server, close = build(settings, opened, loop)
        try:
            loop.run_until_complete(live(server, opened, options))
        finally:
            close()
    finally:
        loop.close()


def build(
    settings: Settings, opened: list[Listener], loop: asyncio.AbstractEventLoop
) -> tuple[Server, Callable[[], None]]:
    """Start the node and make the server in front of it; returns the server, and what ends the node's thread."""
    from moldau.broker.node import Node
    from moldau.broker.peer_security import check_peers, tls_for, waits_for_logins
    from moldau.broker.rim.background import Worker
    from moldau.broker.rim.peers import Peers
    from moldau.broker.rim.server import Server
    from moldau.broker.storage import StartError
    from moldau.log.disk import OsDisk

    clock = SystemClock()
    worker = Worker(lambda call: server.post(call))
    peers = Peers(
        loop, lambda: server.heard_peer(), settings["socket.request.max.bytes"], lambda peer: tls_for(node, peer)
    )
    node = Node(settings, OsDisk(), clock, SystemRandom(), worker, peers)
    server = Server(node, clock, loop)
    server.ip_limit = node.ip_limit
    if not settings.is_alone:
        check_peers(settings)
        if waits_for_logins(settings):
            # Nobody waits for this thread at the end: it may wait for a KDC that does not answer.
            node.outbox.logins = Worker(lambda call: None if loop.is_closed() else server.post(call), "moldau-logins")
    if any(listener.protocol != "PLAINTEXT" for listener in opened):
        from moldau.broker.rim.entrances import open_entrances

        server.entrances = open_entrances(node, opened)
        node.check_settings = lambda changed: [entrance.check(changed) for entrance in server.entrances.values()]
    try:
        clients = [endpoint(listener) for listener in opened if not listener.is_controller]
        node.start(clients, [endpoint(listener) for listener in opened if listener.is_controller])
    except StartError as error:
        raise UserError(str(error)) from None
    for listener in opened:
        server.listen(listener.socket, listener)
    return server, worker.close


async def take_part(server: Server) -> None:
    """Wait until the controllers have let this broker in; raises UserError if they do not.

    Until it is registered its listeners refuse everybody: a controller that still believes in the process before this
    one sees by that that it is gone. From then on clients wait in the backlog.
    """
    from moldau.cluster.lifecycle import State

    await member_until(server, lambda state: state is not State.REGISTERING)
    try:
        server.open()
    except OSError as error:
        raise UserError(f"Cannot listen: {error.strerror}. Another program has taken a port in the meantime.") from None
    await member_until(server, lambda state: state is State.RUNNING)


async def hand_over(server: Server) -> None:
    """Let the controllers give our partitions to others before we stop, then the lead of the quorum, within reason."""
    from moldau.cluster.lifecycle import State

    node, member, quorum = server.node, server.node.membership, server.node.quorum
    if member is not None and member.problem is None and node.settings["controlled.shutdown.enable"]:
        member.leave()
        server.heard_peer()
        await within(HAND_OVER_S, server, lambda: member.problem is not None or member.state is State.STOPPED)
    if quorum is not None and quorum.is_voter:
        quorum.resign()
        await within(RESIGN_S, server, lambda: quorum.has_left)


async def within(seconds: float, server: Server, condition: Callable[[], bool]) -> None:
    """Wait for something, unless there is no controller any more that could bring it about."""
    import asyncio

    loop, quorum = server.loop, server.node.quorum
    deadline = loop.time() + seconds
    led = looked = loop.time()
    while not condition() and loop.time() < min(deadline, led + LEADERLESS_S):
        if quorum is None or quorum.leader is not None:
            led = loop.time()
        if quorum is not None and (quorum.is_active or quorum.leader is None):
            if quorum.is_hopeless:
                return
            if looked <= loop.time():
                quorum.look_around()
                looked = loop.time() + LOOK_AROUND_S
        await asyncio.sleep(LOOK_S)


async def member_until(server: Server, condition: Callable[[Any], bool]) -> None:
    member = server.node.membership
    if member is None:
        return
    reached = server.loop.create_future()

    def look() -> None:
        if (member.problem is not None or condition(member.state)) and not reached.done():
            reached.set_result(None)

    member.on_change = look
    look()
    await reached
    if member.problem is not None:
        raise UserError(member.problem)


def endpoint(listener: Listener) -> Endpoint:
    """Return a listener as the metadata has it."""
    from moldau.machines.metadata.cluster import Endpoint

    return Endpoint(listener.name, listener.advertised_host, listener.advertised_port, PROTOCOLS[listener.protocol])


def raise_descriptor_limit() -> None:
    """Take as many descriptors as the system grants: every connection and segment file is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def report_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a fault of ours on the loop in full; the broker goes on for the other connections."""
    log.error(str(context.get("message")), context.get("exception"))


async def live(server: Server, opened: list[Listener], options: Options) -> None:
    """Serve until a signal, or until stdin ends where that was asked for. A second signal ends the process."""
    import asyncio

    loop = server.loop
    stopped = loop.create_future()

    def stop(reason: str) -> None:
        if stopped.done():
            log.warning("forced to stop", reason=reason)
            os._exit(FAILED)
        stopped.set_result(reason)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, signal.Signals(number).name)
    if options.stop_with_stdin:
        loop.add_reader(0, lambda: os.read(0, 1024) or (loop.remove_reader(0), stop("stdin ended")))
    page = await open_page(server, options.metrics_port)
    server.node.on_fatal = end_at_once
    server.node.on_due = lambda: loop.call_soon(server.heard_peer)
    server.start(accepting=server.node.membership is None)
    joining = loop.create_task(take_part(server))
    await asyncio.wait([joining, stopped], return_when=asyncio.FIRST_COMPLETED)
    if joining.done():
        await joining
    joining.cancel()
    server.accept()
    # What start-up made lives until the end: the collector need not look at it again and again.
    gc.freeze()
    gc.enable()
    log.info("ready", listeners=",".join(listener.advertised for listener in opened))
    print(f"ready {opened[0].address}", flush=True)  # noqa: T201
    log.info("stopping", reason=await stopped)
    if page is not None:
        page.close()
    await hand_over(server)
    server.node.on_fatal = log.debug  # the logs are closed now, and somebody may still ask
    await server.stop()
    log.info("stopped")


def end_at_once(reason: str) -> None:
    """End the process without a word to anybody: what it knows cannot be trusted any more."""
    log.error(reason)
    os._exit(FAILED)


async def open_page(server: Server, port: int | None) -> asyncio.Server | None:
    """Open the metrics page, if it was asked for."""
    if port is None:
        return None
    from moldau.broker import metrics

    try:
        page = await metrics.serve(server, port)
    except OSError as error:
        raise UserError(f"Cannot serve metrics on port {port}: {error.strerror}. Choose another one.") from None
    log.info("metrics", url=f"http://127.0.0.1:{page.sockets[0].getsockname()[1]}/metrics")
    return page

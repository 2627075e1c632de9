"""A worker that cannot go on, and what is said again and again."""

from __future__ import annotations

import os
import signal
import threading
import time

from moldau.client import Client, Member
from moldau.connect.threads import Seldom
from moldau.testing import Broker
from tests.connect.running import settings
from tests.services import Service


def test_a_worker_that_has_lost_its_group_to_apaches_ends_with_an_error(connect_broker: Broker) -> None:
    """It stands still for longer than its session lasts, and finds others in its place."""
    servers = connect_broker.bootstrap_servers
    given = settings(servers) | {"session.timeout.ms": "1000", "heartbeat.interval.ms": "200"}
    chosen = tuple(f"{name}={text}" for name, text in given.items() if name != "bootstrap.servers")
    options = ("--bootstrap-servers", servers, "--listen", "127.0.0.1:0")
    service = Service("connect", *options, settings=chosen, trust_env=False)
    joined = threading.Event()
    try:
        os.kill(service.process.pid, signal.SIGSTOP)
        time.sleep(2.0)
        with Client({"bootstrap.servers": servers}) as client:
            theirs = Member(
                client,
                given["group.id"],
                "connect",
                [("sessioned", b""), ("compatible", b"")],
                lambda _, peers: {peer.id: b"" for peer in peers},
                on_assigned=lambda _: joined.set(),
            )
            with theirs.start():
                assert joined.wait(60)
                os.kill(service.process.pid, signal.SIGCONT)
                assert service.process.wait(60) == 1
    finally:
        service.kill()


def test_the_same_is_said_once_in_a_while() -> None:
    may_say = Seldom(0.2, most=2)
    assert [may_say(text) for text in "aab"] == [True, False, True]
    assert may_say("c") and may_say("a"), "what was said first is forgotten first"
    time.sleep(0.25)
    assert may_say("c")

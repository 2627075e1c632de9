"""Logins in every order, and of every size: who comes in, and who is closed, is what a small model says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.connection import ANONYMOUS
from moldau.tokens.web_tokens import Rules, Validator
from moldau.wire.errors import Error
from tests.broker.authentication.secured import BEARER, SCRAM, plain_line
from tests.broker.authentication.test_gate import GOOD, MECHANISMS, USERS, Visitor, unsigned
from tests.broker.conftest import World

PLAIN, FIRST, LONG, LARGEST = "PLAIN", b"n,,n=sue1,r=abc", 4, 512 * 1024 - 100
CLOSED, OPEN, THROUGH = "closed", "open", "through"
PATIENCE_S = 10.0  # of the tests; what is quadratic in half a megabyte takes minutes


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    lines = {"plain": plain_line(USERS), "scram-sha-256": SCRAM, "scram-sha-512": SCRAM, "oauthbearer": BEARER}
    given = {f"listener.name.sasl_plaintext.{name}.sasl.jaas.config": line for name, line in lines.items()}
    given |= {"sasl.enabled.mechanisms": MECHANISMS}
    world = World(Path(tmp_path_factory.mktemp("orders")), given)
    now_s = lambda: world.clock.wall_ms() / 1000  # noqa: E731
    world.node.validators["SASL_PLAINTEXT"] = Validator(Rules(None, (), 0, "sub", "scope"), now_s)
    yield world
    world.node.stop()


STEPS: dict[str, Callable[[Visitor], Any]] = {
    "versions": Visitor.versions,
    "handshake": Visitor.shake,
    "handshake v0": lambda visitor: visitor.shake(version=0),
    "proof": lambda visitor: visitor.prove(GOOD),
    "wrong proof": lambda visitor: visitor.prove(b"\0alice\0x"),
    "raw proof": lambda visitor: visitor.raw(GOOD),
    "metadata": Visitor.metadata,
}
# What a step makes of each state of a login; a step that is not named closes the connection.
NEXT = {
    "new": {"versions": "asked", "handshake": "shaken", "handshake v0": "raw"},
    "asked": {"handshake": "shaken", "handshake v0": "raw"},
    "shaken": {"proof": THROUGH},
    "raw": {"raw proof": THROUGH},
}


@pytest.mark.parametrize("first", STEPS)
def test_messages_in_every_order_come_in_as_the_table_says(world: World, first: str) -> None:
    for rest in product(STEPS, repeat=LONG - 1):
        visitor, state = Visitor(world), "new"
        for name in (first, *rest):
            STEPS[name](visitor)
            state = NEXT[state].get(name, CLOSED)
            assert visitor.is_through == (state == THROUGH), (first, *rest)
            assert (visitor.connection.closing is not None) == (state == CLOSED), (first, *rest)
            assert visitor.connection.principal == ("User:alice" if state == THROUGH else ANONYMOUS)
            if state in (THROUGH, CLOSED):
                break
        world.node.disconnect(visitor.connection)


LARGE = {
    "PLAIN": (
        b"x" * LARGEST,
        b"\0" * LARGEST,
        b"\0alice\0" + b"x" * LARGEST,
        b"\0" + b"x" * LARGEST + b"\0b",
        b"\xff" * LARGEST,
    ),
    "SCRAM-SHA-256": (
        b"n" * LARGEST,
        b"n,,n=" + b"x" * LARGEST,
        b"n,,n=" + b"=2C" * (LARGEST // 3) + b",r=",
        b"n,,n=a,r=b" + b",x=y" * (LARGEST // 4) + b",",
        b"n,a=" + b"=3D" * (LARGEST // 3),
        b"n,,n=a,r=" + b"," * LARGEST,
    ),
    "OAUTHBEARER": (
        b"n,,\x01" * (LARGEST // 4),
        b"n,,\x01auth=Bearer " + b"x" * (LARGEST - 100) + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"a.b." * (LARGEST // 5) + b"\x01\x01",
        b"n,,\x01auth=Bearer a.b.c" + b"\x01k=v" * (LARGEST // 5) + b"\x01\x01",
        unsigned(sub="x" * (LARGEST // 2), exp=1 << 33),
    ),
}


@pytest.mark.parametrize(("mechanism", "number"), [(name, n) for name, some in LARGE.items() for n in range(len(some))])
def test_a_message_of_half_a_megabyte_is_refused_at_once(world: World, mechanism: str, number: int) -> None:
    visitor = Visitor(world)
    visitor.shake(mechanism)
    begin = time.process_time()
    answer = visitor.prove(LARGE[mechanism][number])
    if mechanism == "OAUTHBEARER" and not answer.error_code:
        answer = visitor.prove(b"\x01")
    assert time.process_time() - begin < PATIENCE_S
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED and len(answer.error_message) < 1000
    assert not visitor.is_through and visitor.connection.closing


def test_the_last_message_of_scram_may_be_half_a_megabyte_as_well(world: World) -> None:
    for last in (
        b"c=biws,r=abc,p=" + b"A" * LARGEST,
        b"c=" + b"A" * LARGEST,
        b"c=biws,r=" + b"!" * LARGEST + b",p=AA==",
    ):
        visitor = Visitor(world)
        visitor.shake("SCRAM-SHA-256")
        assert not visitor.prove(FIRST).error_code
        begin = time.process_time()
        assert visitor.prove(last).error_code == Error.SASL_AUTHENTICATION_FAILED
        assert time.process_time() - begin < PATIENCE_S

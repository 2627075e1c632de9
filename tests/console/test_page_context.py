"""Who may act is decided in the server, at the moment of the act."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from moldau.admin.connection import Connection
from moldau.client import ClientError, Error
from moldau.console.accounts import Account, Sessions, hash_password
from moldau.console.model.problems import Refused, problem
from moldau.console.page_context import Console, Desk
from moldau.serdes.registry import RegistryError

ADA, BOB = (
    Account("ada", hash_password("correct horse")),
    Account("bob", hash_password("battery staple"), role="viewer"),
)


@pytest.fixture
def console() -> Iterator[Console]:
    made = Console(Connection("127.0.0.1:1"), sessions=Sessions({"ada": ADA, "bob": BOB}))
    yield made
    made.close()


def act(desk: Desk) -> str:
    return asyncio.run(desk.act(lambda: "done"))


def test_a_user_may_act_until_the_session_ends(console: Console) -> None:
    assert console.sessions
    token = console.sessions.enter("ada", "correct horse")
    desk = Desk(console, account=ADA, token=token)
    assert act(desk) == "done"
    console.sessions.leave(token)
    with pytest.raises(Refused, match="log in"):
        act(desk)


def test_who_may_only_look_is_refused(console: Console) -> None:
    assert console.sessions
    token = console.sessions.enter("bob", "battery staple")
    with pytest.raises(Refused, match="read-only"):
        act(Desk(console, account=BOB, token=token))


def test_a_console_that_is_read_only_refuses_everybody() -> None:
    console = Console(Connection("127.0.0.1:1"), read_only=True)
    with pytest.raises(Refused, match="read-only"):
        act(Desk(console))
    assert asyncio.run(Desk(console).ask(lambda: "seen")) == "seen"
    console.close()


def test_problems_say_what_to_do() -> None:
    away = problem(ClientError(Error.NETWORK_EXCEPTION, "Nobody listens."), "b:1", "http://r")
    assert "b:1" in away.sentence and "moldau up" in away.remedy
    assert "http://r" in problem(RegistryError("It is away."), "b:1", "http://r").remedy
    assert "ACL" in problem(ClientError(Error.TOPIC_AUTHORIZATION_FAILED, "No."), "b:1", "http://r").remedy
    assert problem(Refused("No."), "b:1", "http://r").sentence == "No."

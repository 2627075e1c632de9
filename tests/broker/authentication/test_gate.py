"""The gate: what Kafka answers in each state, what it closes without an answer, and that nobody slips through."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.authentication.gate import Gate
from moldau.broker.connection import ANONYMOUS, Connection
from moldau.sasl import scram
from moldau.tokens.web_tokens import Rules, Validator
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from tests.broker.authentication.secured import BEARER, SCRAM, plain_line
from tests.broker.conftest import World

USERS = {"alice": "b", "admin": "a"}
GOOD, OTHER = b"\0alice\0b", b"\0admin\0a"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
FAILED = Error.SASL_AUTHENTICATION_FAILED
DELAY_MS = 100


@dataclass
class Visitor:
    """A client at the gate. A step returns the answer, or "closed" where there is none."""

    world: World
    connection: Connection = field(default_factory=lambda: Connection(7, "SASL_PLAINTEXT", "127.0.0.1:5"))

    def __post_init__(self) -> None:
        self.world.node.connect(self.connection)
        self.connection.gate = Gate(self.world.node, self.connection)

    def raw(self, data: bytes) -> Any:
        connection, node = self.connection, self.world.node
        receive = node.receive if connection.gate is None else connection.gate.receive
        try:
            receive(connection, memoryview(bytearray(data)))
        except WireError:
            connection.closing = "closed"
            return "closed"
        if connection.pending:
            self.world.advance(DELAY_MS - 1)
            assert not connection.out, "a failure is answered late"
            self.world.advance(1)
        answer = b"".join(connection.out)
        connection.out.clear()
        if not answer:
            return "closed"
        assert int.from_bytes(answer[:4]) == len(answer) - 4
        return answer[4:]

    def ask(self, request: Any, version: int) -> Any:
        answer = self.raw(frames.request_frame(request, version, 3, "visitor")[4:])
        if answer == "closed":
            return answer
        key = request.SCHEMA.key
        _, position = frames.response_header(key, version, answer)
        return codec.decode(m.response_class(key), version, memoryview(answer), position)

    def versions(self, version: int = 3) -> Any:
        return self.ask(m.ApiVersionsRequest("visitor", "1"), version)

    def shake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(m.SaslHandshakeRequest(mechanism), version)

    def prove(self, token: bytes, version: int = 2) -> Any:
        return self.ask(m.SaslAuthenticateRequest(token), version)

    def metadata(self) -> Any:
        return self.ask(m.MetadataRequest([]), 9)

    def log_in(self, token: bytes = GOOD) -> Any:
        self.shake()
        return self.prove(token)

    @property
    def is_through(self) -> bool:
        return self.connection.gate is None and self.connection.closing is None

    def log_in_by_scram(self, mechanism: str, user: str, password: str, **more: str) -> Any:
        """Go through a whole exchange; returns the last answer."""
        talk = scram.client(scram.HASHES[mechanism], user, password, "nonce", more)
        self.shake(mechanism)
        answer = self.prove(next(talk))
        if not answer.error_code:
            answer = self.prove(talk.send(bytes(answer.auth_bytes)))
        return answer


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    lines = {"plain": plain_line(USERS), "scram-sha-256": SCRAM, "scram-sha-512": SCRAM, "oauthbearer": BEARER}
    given = {f"listener.name.sasl_plaintext.{name}.sasl.jaas.config": line for name, line in lines.items()}
    given |= {"sasl.enabled.mechanisms": MECHANISMS, "delegation.token.secret.key": "secret"}
    world = World(Path(tmp_path_factory.mktemp("gate")), given)
    for number, algorithm in ((1, "sha256"), (2, "sha512")):
        salted = hashlib.pbkdf2_hmac(algorithm, b"pw", b"salt", 4096)
        row = m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(f"sue{number}", number, 4096, b"salt", salted)
        assert not world.call(m.AlterUserScramCredentialsRequest([], [row])).results[0].error_code
    now_s = lambda: world.clock.wall_ms() / 1000  # noqa: E731
    world.node.validators["SASL_PLAINTEXT"] = Validator(Rules(None, (), 0, "sub", "scope"), now_s)
    yield world
    world.node.stop()


@pytest.fixture
def visitor(world: World) -> Iterator[Visitor]:
    visitor = Visitor(world)
    yield visitor
    world.node.disconnect(visitor.connection)


Step = Callable[[Visitor], Any]


@pytest.mark.parametrize(
    "steps",
    [
        (Visitor.metadata,),
        (Visitor.versions, Visitor.metadata),
        (Visitor.versions, Visitor.versions),
        (lambda visitor: visitor.prove(GOOD),),
        (lambda visitor: visitor.raw(b"\x60\x82\x02\x00"),),
        (lambda visitor: visitor.raw(b""),),
    ],
)
def test_what_is_not_admitted_is_closed_without_an_answer(visitor: Visitor, steps: tuple[Step, ...]) -> None:
    *before, last = steps
    assert all(step(visitor) != "closed" for step in before)
    assert last(visitor) == "closed"
    assert not visitor.is_through and visitor.connection.principal == ANONYMOUS


@pytest.mark.parametrize("mechanism", ["NOPE", "plain", "", "GSSAPI"])
def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list(visitor: Visitor, mechanism: str) -> None:
    answer = visitor.shake(mechanism)
    assert (answer.error_code, answer.mechanisms) == (Error.UNSUPPORTED_SASL_MECHANISM, MECHANISMS.split(","))
    assert visitor.connection.closing


@pytest.mark.parametrize("step", [Visitor.versions, Visitor.shake])
def test_a_request_within_an_exchange_is_answered_and_closed(visitor: Visitor, step: Step) -> None:
    visitor.shake()
    assert step(visitor).error_code == Error.ILLEGAL_SASL_STATE
    assert visitor.connection.closing


def test_a_response_without_an_error_code_is_empty(visitor: Visitor) -> None:
    visitor.shake()
    assert visitor.metadata().topics == [] and visitor.connection.closing


def test_a_version_of_apiversions_that_is_too_new_may_be_asked_again(visitor: Visitor) -> None:
    frame = bytearray(frames.request_frame(m.ApiVersionsRequest("visitor", "1"), 4, 3, "visitor")[4:])
    frame[2:4] = (99).to_bytes(2)
    assert int.from_bytes(visitor.raw(bytes(frame))[4:6]) == Error.UNSUPPORTED_VERSION
    assert visitor.versions().error_code == 0 and visitor.log_in().error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_who_knows_the_password_is_through(visitor: Visitor, version: int) -> None:
    assert visitor.versions().error_code == visitor.shake().error_code == 0
    answer = visitor.prove(GOOD, version)
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert visitor.is_through and visitor.connection.principal == "User:alice"
    assert visitor.metadata() != "closed"


def test_a_failure_is_answered_late_and_then_closed(visitor: Visitor) -> None:
    answer = visitor.log_in(b"\0alice\0x")
    assert answer.error_code == FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert visitor.connection.closing and visitor.connection.principal == ANONYMOUS


def test_raw_tokens_follow_version_0_of_the_handshake(visitor: Visitor) -> None:
    assert visitor.shake(version=0).error_code == 0
    assert visitor.connection.gate is not None and visitor.connection.gate.bounds[0] == 0
    assert visitor.raw(GOOD) == b""
    assert visitor.is_through and visitor.metadata() != "closed"


def test_a_raw_token_that_is_wrong_has_no_answer(visitor: Visitor) -> None:
    visitor.shake(version=0)
    assert visitor.raw(b"\0alice\0x") == "closed" and visitor.connection.closing


def test_unauthenticated_memory_is_bounded(visitor: Visitor) -> None:
    assert visitor.connection.gate is not None
    assert visitor.connection.gate.bounds == (8, 524288)


@pytest.mark.parametrize("number", [1, 2])
def test_each_scram_mechanism_logs_in_its_users(world: World, visitor: Visitor, number: int) -> None:
    mechanism = ("SCRAM-SHA-256", "SCRAM-SHA-512")[number - 1]
    assert visitor.log_in_by_scram(mechanism, f"sue{number}", "pw").error_code == 0
    assert visitor.connection.principal == f"User:sue{number}"


@pytest.mark.parametrize("user", ["nobody", "sue2", "sue1"])
def test_an_unknown_user_fails_as_a_wrong_password_does(world: World, user: str) -> None:
    salts = set()
    for _ in range(2):
        visitor = Visitor(world)
        visitor.shake("SCRAM-SHA-256")
        first = visitor.prove(f"n,,n={user},r=abc".encode())
        salts.add(bytes(first.auth_bytes).split(b",s=")[1])
        world.node.disconnect(visitor.connection)
        again = Visitor(world)
        last = again.log_in_by_scram("SCRAM-SHA-256", user, "wrong")
        assert (first.error_code, last.error_code) == (0, FAILED)
        assert last.error_message == scram.invalid_credentials("SCRAM-SHA-256")
        world.node.disconnect(again.connection)
    assert len(salts) == 1


def test_a_password_that_is_changed_counts_from_the_next_login(world: World) -> None:
    def salted(password: bytes) -> Any:
        keys = hashlib.pbkdf2_hmac("sha256", password, b"salt", 4096)
        return m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion("zoe", 1, 4096, b"salt", keys)

    outcomes = []
    for password in (b"old", b"new"):
        world.call(m.AlterUserScramCredentialsRequest([], [salted(password)]))
        outcomes.append(Visitor(world).log_in_by_scram("SCRAM-SHA-256", "zoe", "old").error_code)
    deletion = m.AlterUserScramCredentialsRequest_ScramCredentialDeletion("zoe", 1)
    world.call(m.AlterUserScramCredentialsRequest([deletion], []))
    outcomes.append(Visitor(world).log_in_by_scram("SCRAM-SHA-256", "zoe", "new").error_code)
    assert outcomes == [0, FAILED, FAILED]


def unsigned(**claims: Any) -> bytes:
    import json
    from base64 import urlsafe_b64encode

    parts = (urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in ({"alg": "none"}, claims))
    return f"n,,\x01auth=Bearer {'.'.join(parts)}.\x01\x01".encode()


def test_a_session_is_as_long_as_the_token(world: World, visitor: Visitor) -> None:
    visitor.shake("OAUTHBEARER")
    answer = visitor.prove(unsigned(sub="olga", exp=world.clock.wall_ms() // 1000 + 60))
    assert (answer.error_code, visitor.connection.principal) == (0, "User:olga")
    assert 59_000 <= answer.session_lifetime_ms <= 60_000
    world.advance(61_000)
    assert visitor.metadata() == "closed"


def test_a_token_that_has_ended_is_refused(world: World, visitor: Visitor) -> None:
    visitor.shake("OAUTHBEARER")
    answer = visitor.prove(unsigned(sub="olga", exp=world.clock.wall_ms() // 1000 - 1))
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b'{"status":"invalid_token"}')
    answer = visitor.prove(b"\x01")
    assert (answer.error_code, answer.error_message) == (FAILED, '{"status":"invalid_token"}')


# Again.


def test_authenticating_twice_without_a_handshake_is_refused_and_stays_open(visitor: Visitor) -> None:
    visitor.log_in()
    answer = visitor.prove(GOOD)
    assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert visitor.is_through


def test_the_same_user_may_authenticate_again(visitor: Visitor) -> None:
    for _ in range(3):
        assert visitor.log_in().error_code == 0 and visitor.metadata() != "closed"


def test_another_user_may_not_take_over_a_connection(visitor: Visitor) -> None:
    visitor.log_in()
    answer = visitor.log_in(OTHER)
    assert answer.error_code == FAILED
    assert answer.error_message == ("Cannot change principals during re-authentication from User.alice: User.admin")
    assert visitor.connection.closing


def test_another_mechanism_may_not_take_over_a_connection(visitor: Visitor) -> None:
    visitor.log_in()
    assert visitor.shake("SCRAM-SHA-256").error_code == 0
    assert visitor.prove(b"n,,n=alice,r=abc") == "closed"


def test_nothing_is_admitted_while_a_connection_authenticates_again(visitor: Visitor) -> None:
    visitor.log_in()
    visitor.shake()
    visitor.metadata()
    assert visitor.connection.closing


@pytest.fixture
def short_sessions(world: World) -> Iterator[None]:
    before = world.node.settings
    world.node.settings = type(before)({**before.static, "connections.max.reauth.ms": "1000"})
    yield
    world.node.settings = before


@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("version", [0, 1])
def test_a_session_that_has_ended_admits_another_login_alone(world: World, visitor: Visitor, version: int) -> None:
    visitor.shake()
    assert visitor.prove(GOOD, version).session_lifetime_ms == (1000 if version else 0)
    world.advance(999)
    assert visitor.metadata() != "closed"
    world.advance(1)
    assert visitor.log_in().error_code == 0 and visitor.metadata() != "closed"
    world.advance(1000)
    assert visitor.metadata() == "closed"


@pytest.mark.usefixtures("short_sessions")
def test_a_session_that_ends_during_another_login_does_not_hinder_it(world: World, visitor: Visitor) -> None:
    visitor.log_in()
    visitor.shake()
    world.advance(1000)
    assert visitor.prove(GOOD).error_code == 0 and visitor.is_through
    world.advance(999)
    assert visitor.metadata() != "closed"


@pytest.mark.usefixtures("short_sessions")
def test_a_connection_that_is_gone_leaves_no_session_behind(world: World) -> None:
    before = world.node.waits.live
    visitor = Visitor(world)
    visitor.log_in()
    assert world.node.waits.live == before + 1
    world.node.disconnect(visitor.connection)
    assert world.node.waits.live == before


def test_a_delegation_token_authenticates_as_its_owner(world: World) -> None:
    from moldau.broker.tokens import hmac_of

    now = world.clock.wall_ms()
    record = m.DelegationTokenRecord("User:tom", "User:tom", [], now, now + 9000, now + 5000, "some-id")
    world.change(record)
    password = b64encode(hmac_of("secret", "some-id")).decode()
    visitor = Visitor(world)
    assert visitor.log_in_by_scram("SCRAM-SHA-256", "some-id", password, tokenauth="true").error_code == 0
    assert (visitor.connection.principal, visitor.connection.by_token) == ("User:tom", True)
    for user, secret, more in (("some-id", password, {}), ("other-id", password, {"tokenauth": "true"})):
        assert Visitor(world).log_in_by_scram("SCRAM-SHA-256", user, secret, **more).error_code == FAILED
    world.advance(6000)
    assert Visitor(world).log_in_by_scram("SCRAM-SHA-256", "some-id", password, tokenauth="true").error_code == FAILED


# Everything at once.

REQUESTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            frames.request_frame(request, version, 1, "x")[4:]
            for request, version in (
                (m.ApiVersionsRequest("x", "1"), 3),
                (m.SaslHandshakeRequest("PLAIN"), 1),
                (m.SaslHandshakeRequest("PLAIN"), 0),
                (m.SaslHandshakeRequest("SCRAM-SHA-256"), 1),
                (m.SaslHandshakeRequest("OAUTHBEARER"), 0),
                (m.SaslAuthenticateRequest(b"\0alice\0"), 2),
                (m.SaslAuthenticateRequest(b"\0alice\0x"), 2),
                (m.SaslAuthenticateRequest(b"n,,n=sue1,r=abc"), 2),
                (m.SaslAuthenticateRequest(b"\x01"), 1),
                (m.MetadataRequest([]), 9),
            )
        ]
    ),
)


@settings(max_examples=150)
@given(st.lists(REQUESTS, max_size=6))
def test_no_sequence_without_a_credential_comes_through(world: World, messages: list[bytes]) -> None:
    visitor = Visitor(world)
    for message in messages:
        visitor.raw(message)
        assert visitor.connection.gate is not None and visitor.connection.principal == ANONYMOUS
        if visitor.connection.closing:
            break
    world.node.disconnect(visitor.connection)

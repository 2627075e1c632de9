"""SASL in every order: our answers are those that were recorded from Apache Kafka, but for a few, which say why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import CONTROLLER, Client, check
from moldau.testing.process import Broker
from moldau.wire import messages as m
from tests.broker.authentication.secured import Secured, plain_line
from tests.conformance.sasl.record import RECORDED
from tests.conformance.sasl.scenarios import PASSWORD, SCENARIOS, USER, play

KAFKAS: dict[str, list[str]] = json.loads(RECORDED.read_text())
# What we answer otherwise, and why.
OTHERWISE = {
    "scram, unknown user": "who exists is not told: the exchange goes on, and fails at its end",
    "scram, mandatory extension": "RFC 5802 wants it refused",
    "scram, for another": "told apart from a wrong password by Kafka alone",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    secured = Secured(Path(tmp_path_factory.mktemp("sasl")))
    users = plain_line({USER: PASSWORD, "admin": "admin-secret"})
    more = {
        "connections.max.reauth.ms": "60000",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
        "sasl.oauthbearer.jwks.endpoint.url": "",
        "moldau.sasl.oauthbearer.unsecured": "true",
        "sasl.oauthbearer.expected.audience": "",
    }
    broker = Broker(secured.broker() | more)
    broker.start()
    try:
        with Client(secured.client("PLAINTEXT")) as client:
            salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt", 4096)
            row = m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(USER, 1, 4096, b"salt", salted)
            check(client.send(m.AlterUserScramCredentialsRequest(upsertions=[row]), CONTROLLER))
        yield secured.ports["SASL_PLAINTEXT"]
    finally:
        broker.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_answer_is_kafkas(port: int, name: str) -> None:
    ours = play(port, SCENARIOS[name])
    if name in OTHERWISE:
        assert ours != KAFKAS[name], "it is as in Kafka now: take it out of OTHERWISE"
    else:
        assert ours == KAFKAS[name]


def test_every_conversation_was_recorded() -> None:
    assert KAFKAS.keys() == SCENARIOS.keys()

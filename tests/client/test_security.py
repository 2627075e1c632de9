"""TLS and SASL against Apache Kafka with a listener of each kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import ANY, Client, ClientError
from moldau.client.connection import Connection
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.client.apache import USER, Apache

pytestmark = pytest.mark.needs("java", "kafka-jars")
OAUTH = {"sasl.mechanism": "OAUTHBEARER", "sasl.username": None, "sasl.password": None}
UNSIGNED = {**OAUTH, "enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={USER}"}


def cluster(settings: dict[str, Any]) -> str:
    """The cluster's id, also asked of a broker by its own address."""
    with Client(settings) as client:
        found = client.send(m.DescribeClusterRequest(), timeout_s=20)
        client.send(m.DescribeClusterRequest(), 1, timeout_s=20)
        return found.cluster_id


def failure(call: Callable[[], Any]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_is_let_in_by_password(apache: Apache, mechanism: str) -> None:
    assert cluster(apache.settings("SASL_PLAINTEXT", sasl_mechanism=mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_user_is_let_in_by_password_inside_tls(apache: Apache, mechanism: str) -> None:
    assert cluster(apache.settings("SASL_SSL", sasl_mechanism=mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_at_once(apache: Apache, mechanism: str) -> None:
    error = failure(lambda: cluster(apache.settings("SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_password="no")))
    assert (error.error, error.retriable) == (Error.SASL_AUTHENTICATION_FAILED, False)
    assert "refused the credentials" in str(error)


def test_a_token_nobody_signed_is_let_in_where_that_is_allowed(apache: Apache) -> None:
    assert cluster({**apache.settings("SASL_PLAINTEXT"), **UNSIGNED})


def test_a_token_that_is_no_token_is_refused_with_the_reason(apache: Apache) -> None:
    settings = {**apache.settings("SASL_PLAINTEXT"), **OAUTH, "oauth_cb": lambda _: "not.a.token"}
    error = failure(lambda: cluster(settings))
    assert (error.error, error.retriable) == (Error.SASL_AUTHENTICATION_FAILED, False)


def test_a_mechanism_that_the_broker_does_not_offer_is_told_with_those_it_does(apache: Apache) -> None:
    error = failure(lambda: cluster(apache.settings("SASL_SSL", sasl_mechanism="SCRAM-SHA-256")))
    assert error.error is Error.UNSUPPORTED_SASL_MECHANISM
    assert "does not offer SASL SCRAM-SHA-256, only " in str(error) and "PLAIN" in str(error)


def test_no_authentication_where_it_is_wanted_is_told(apache: Apache) -> None:
    settings = {**apache.settings("SASL_PLAINTEXT"), "security.protocol": "plaintext", "retries": 1}
    assert "closed the connection" in str(failure(lambda: cluster(settings)))


def test_authentication_where_none_is_wanted_is_told(apache: Apache) -> None:
    settings = {**apache.settings("SASL_PLAINTEXT"), "bootstrap.servers": apache.bootstrap_servers, "retries": 1}
    error = failure(lambda: cluster(settings))
    assert error.error is Error.ILLEGAL_SASL_STATE
    assert "see sasl.mechanism" in str(error) or "security.protocol" in str(error)


def mine(apache: Apache) -> dict[str, str]:
    folder = apache.folder
    return {"ssl.certificate.location": str(folder / "client.pem"), "ssl.key.location": str(folder / "client.key")}


def test_a_client_is_let_in_by_its_certificate(apache: Apache) -> None:
    assert cluster({**apache.settings("SSL"), **mine(apache)})


def test_a_client_without_a_certificate_is_refused(apache: Apache) -> None:
    error = failure(lambda: cluster(apache.settings("SSL", retries=1)))
    assert "ssl.certificate.location" in str(error) or "closed the connection" in str(error)


def test_a_broker_of_an_unknown_authority_is_refused(apache: Apache) -> None:
    error = failure(lambda: cluster(apache.settings("SASL_SSL", ssl_ca_location="")))
    assert "certificate is not accepted" in str(error) and not error.retriable


def test_no_tls_where_it_is_wanted_is_told(apache: Apache) -> None:
    settings = {**apache.settings("SSL"), "security.protocol": "plaintext", "retries": 1}
    assert "security.protocol" in str(failure(lambda: cluster(settings)))


def test_tls_where_none_is_wanted_is_told(apache: Apache) -> None:
    settings = {**apache.settings("SSL"), "bootstrap.servers": apache.bootstrap_servers, "retries": 1}
    error = failure(lambda: cluster({**settings, "socket.connection.setup.timeout.ms": 3000}))
    assert "TLS" in str(error) or "closed" in str(error) or "says nothing" in str(error)


def test_a_session_is_renewed_before_it_ends(apache: Apache, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(apache.settings("SASL_PLAINTEXT")) as client:
        first = client.connection(ANY, client.deadline())
        client.brokers.give_back(first)
        again = client.connection(ANY, client.deadline())
        assert again is first
        client.brokers.give_back(again)
        now = time.monotonic()
        logins: list[Connection] = []
        log_in = Connection._authenticate
        monkeypatch.setattr(Connection, "_authenticate", lambda one, end: (logins.append(one), log_in(one, end))[1])
        monkeypatch.setattr(time, "monotonic", lambda: now + 55)  # of the 60 seconds that the broker gives
        again = client.connection(ANY, client.deadline())
        assert again is first
        again.call(m.DescribeClusterRequest(), client.deadline())
        assert logins == [first]

"""`moldau acl`, `moldau user` and `moldau quota` on a broker that asks who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import broker
from tests.cli.running import SMALL, Moldau

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
GUARDED = {**SMALL, "authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    with broker(GUARDED) as started:
        yield started.bootstrap_servers


@pytest.fixture
def guard(guarded: str, tmp_path: Path) -> Moldau:
    return Moldau(guarded, tmp_path)


def test_rules_are_added_listed_and_removed(guard: Moldau) -> None:
    made = guard.json("acl", "add", "-u", "ada", "--operation", "read", "--operation", "describe", "-t", "orders")
    assert [row["operation"] for row in made] == ["READ", "DESCRIBE"]
    guard("acl", "add", "-u", "User:eve", "--operation", "all", "-t", "ord", "--prefixed", "--deny")
    guard("acl", "add", "-u", "ada", "--consumer", "--topic", "clicks", "--group", "g")
    listed = guard.json("acl", "list", "--principal", "eve")
    assert listed == [
        {
            "resource": "TOPIC",
            "name": "ord",
            "pattern": "PREFIXED",
            "principal": "User:eve",
            "host": "*",
            "operation": "ALL",
            "permission": "DENY",
        }
    ]
    assert {row["principal"] for row in guard.json("acl", "list", "--topic", "orders", "--match")} == {
        "User:ada",
        "User:eve",
    }
    assert {
        (row["resource"], row["operation"]) for row in guard.json("acl", "list") if row["name"] in ("clicks", "g")
    } == {
        ("TOPIC", "READ"),
        ("TOPIC", "DESCRIBE"),
        ("GROUP", "READ"),
    }
    assert len(guard.json("acl", "remove", "--principal", "ada", "--operation", "describe", "--topic", "orders")) == 1
    assert len(guard.json("acl", "remove", "--all")) == 5
    assert guard.run("acl", "list").err == "There are no such rules.\n"


def test_users_have_passwords_that_nobody_sees(guard: Moldau) -> None:
    assert guard("user", "create", "ada", "--password-stdin", stdin="secret\n") == "User ada has SCRAM-SHA-512.\n"
    guard("user", "create", "ada", "--password-stdin", "-m", "scram-sha-256", "--iterations", "8192", stdin="x\n")
    assert guard.json("user", "list") == [
        {"user": "ada", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "ada", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    guard("user", "delete", "ada", "-m", "SCRAM-SHA-256")
    assert [row["mechanism"] for row in guard.json("user", "list")] == ["SCRAM-SHA-512"]
    guard("user", "delete", "ada")
    assert guard.json("user", "list") == []


def test_quotas_are_set_and_taken_away(guard: Moldau) -> None:
    guard("quota", "set", "--user", "ada", "producer_byte_rate=1000", "consumer_byte_rate=2000")
    guard("quota", "set", "--client-id", "default", "request_percentage=20")
    guard("quota", "unset", "--user", "ada", "consumer_byte_rate")
    assert guard.json("quota", "list", "--user", "ada") == [
        {"user": "ada", "quota": "producer_byte_rate", "value": 1000.0}
    ]
    assert {"client_id": "default", "quota": "request_percentage", "value": 20.0} in guard.json("quota", "list")
    assert "producer_byte_rate" in guard("quota", "list")


def test_mistakes_get_a_sentence(guard: Moldau, moldau: Moldau) -> None:
    for words, code, sentence in (
        (("acl", "add", "-u", "ada", "--operation", "read"), 2, "--topic"),
        (("acl", "add", "-u", "ada", "-t", "x"), 2, "--operation"),
        (("acl", "add", "-u", "ada", "-t", "x", "--operation", "fly"), 2, "describe-configs"),
        (("acl", "remove"), 2, "--all"),
        (("user", "create", "ada"), 2, "--password-stdin"),
        (("user", "delete", "nobody"), 1, "no user nobody"),
        (("quota", "set", "producer_byte_rate=1"), 2, "--user"),
        (("quota", "set", "--user", "a", "producer_byte_rate=much"), 2, "number"),
        (("quota", "set", "--user", "a", "no_such_rate=1"), 1, "no_such_rate"),
    ):
        done = guard.run(*words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
    unguarded = moldau.run("acl", "list")
    assert unguarded.code == 1 and "authorizer.class.name" in unguarded.err

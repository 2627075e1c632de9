"""Delegation tokens: who may have, renew, end and see them, and that nobody does who has not authenticated."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import Client

NOT_ALLOWED = Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *((f"{verb}DelegationToken", version) for verb in ("Renew", "Expire") for version in (1, 2)),
        *(("DescribeDelegationToken", version) for version in (1, 2, 3)),
    ],
)
def test_tokens_are_not_for_the_unauthenticated(world, name, version):
    answer = world.call(getattr(m, f"{name}Request")(), version)
    assert answer.error_code == NOT_ALLOWED
    assert getattr(answer, "expiry_timestamp_ms", -1) == -1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_that_is_not_created_names_who_asked(world, version):
    answer = world.call(m.CreateDelegationTokenRequest(), version)
    assert (answer.error_code, answer.principal_type, answer.principal_name) == (NOT_ALLOWED, "User", "ANONYMOUS")
    assert (answer.issue_timestamp_ms, answer.max_timestamp_ms, answer.hmac) == (-1, -1, b"")
    if version >= 3:
        assert answer.token_requester_principal_name == "ANONYMOUS"
        other = world.call(m.CreateDelegationTokenRequest("User", "bob"), version)
        assert (other.principal_name, other.token_requester_principal_name) == ("bob", "ANONYMOUS")


SECRET = {"delegation_token_secret_key": "secret", "delegation_token_expiry_check_interval_ms": "1000"}
HOUR_MS = 3_600_000
RENEWER = m.CreateDelegationTokenRequest_CreatableRenewers("User", "rita")


@pytest.fixture
def tokens(make_world):
    """A world with a secret, in which the client has authenticated as ada."""
    world = make_world(**SECRET)
    world.client.connection.principal = "User:ada"
    return world


def as_user(world, name, *, by_token=False):
    client = Client(world.node)
    client.connection.principal, client.connection.by_token = f"User:{name}", by_token
    return client


def test_a_token_lives_a_day_and_at_most_a_week(tokens):
    made = tokens.call(m.CreateDelegationTokenRequest(renewers=[RENEWER], max_lifetime_ms=-1))
    now = tokens.clock.wall_ms()
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "ada", "ada")
    assert (made.issue_timestamp_ms, len(made.hmac)) == (now, 64)
    assert (made.expiry_timestamp_ms, made.max_timestamp_ms) == (now + 24 * HOUR_MS, now + 7 * 24 * HOUR_MS)
    short = tokens.call(m.CreateDelegationTokenRequest(max_lifetime_ms=HOUR_MS))
    assert short.expiry_timestamp_ms == short.max_timestamp_ms == now + HOUR_MS


def test_without_a_secret_there_are_no_tokens(make_world):
    world = make_world()
    world.client.connection.principal = "User:ada"
    disabled = Error.DELEGATION_TOKEN_AUTH_DISABLED
    assert world.call(m.CreateDelegationTokenRequest()).error_code == disabled
    assert world.call(m.RenewDelegationTokenRequest(b"x", 1)).error_code == disabled
    assert world.call(m.ExpireDelegationTokenRequest(b"x", 1)).error_code == disabled
    assert world.call(m.DescribeDelegationTokenRequest(None)).error_code == disabled


def test_who_came_by_a_token_gets_no_other(tokens):
    client = as_user(tokens, "ada", by_token=True)
    assert client.call(m.CreateDelegationTokenRequest()).error_code == NOT_ALLOWED
    assert client.call(m.DescribeDelegationTokenRequest(None)).error_code == NOT_ALLOWED


def test_owner_and_renewers_renew_and_expire(tokens):
    made = tokens.call(m.CreateDelegationTokenRequest(renewers=[RENEWER], max_lifetime_ms=48 * HOUR_MS))
    tokens.clock.now_ms += 1000
    now = tokens.clock.wall_ms()
    rita, eve = as_user(tokens, "rita"), as_user(tokens, "eve")
    renewal = m.RenewDelegationTokenRequest(made.hmac, -1)
    assert rita.call(renewal).expiry_timestamp_ms == now + 24 * HOUR_MS
    assert tokens.call(m.RenewDelegationTokenRequest(made.hmac, 1 << 60)).expiry_timestamp_ms == made.max_timestamp_ms
    for request in (renewal, m.ExpireDelegationTokenRequest(made.hmac, -1)):
        assert eve.call(request).error_code == Error.DELEGATION_TOKEN_OWNER_MISMATCH
        answer = tokens.call(type(request)(b"x" * 64, -1))
        assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert tokens.call(m.ExpireDelegationTokenRequest(made.hmac, 500)).expiry_timestamp_ms == now + 500
    tokens.clock.now_ms += 501
    assert tokens.call(renewal).error_code == Error.DELEGATION_TOKEN_EXPIRED
    assert rita.call(m.ExpireDelegationTokenRequest(made.hmac, -1)).error_code == 0
    assert not tokens.node.cluster.tokens


def test_who_asked_for_a_token_of_another_owner_may_see_renew_and_end_it(tokens):
    """KIP-373: the requester counts as the owner does."""
    made = tokens.call(m.CreateDelegationTokenRequest("User", "bob", [], -1))
    assert not made.error_code
    bob, eve = as_user(tokens, "bob"), as_user(tokens, "eve")
    for client, error in ((eve, Error.DELEGATION_TOKEN_OWNER_MISMATCH), (bob, 0), (tokens, 0)):
        assert client.call(m.RenewDelegationTokenRequest(made.hmac, -1)).error_code == error
    seen = [one.token_id for one in tokens.call(m.DescribeDelegationTokenRequest(None)).tokens]
    assert seen == [made.token_id]
    assert tokens.call(m.ExpireDelegationTokenRequest(made.hmac, -1)).error_code == 0
    assert not tokens.node.cluster.tokens


def test_tokens_are_shown_to_those_whom_they_concern(tokens):
    made = tokens.call(m.CreateDelegationTokenRequest(renewers=[RENEWER]))
    tokens.restart()
    for name, count in (("ada", 1), ("rita", 1), ("eve", 0)):
        shown = as_user(tokens, name).call(m.DescribeDelegationTokenRequest(None)).tokens
        assert [one.token_id for one in shown] == [made.token_id] * count
        assert all(one.hmac == made.hmac and one.renewers[0].principal_name == "rita" for one in shown)
    owner = m.DescribeDelegationTokenRequest_DescribeDelegationTokenOwner("User", "bob")
    assert as_user(tokens, "ada").call(m.DescribeDelegationTokenRequest([owner])).tokens == []


def test_a_renewer_is_a_user(tokens):
    renewer = m.CreateDelegationTokenRequest_CreatableRenewers("Group", "all")
    assert tokens.call(m.CreateDelegationTokenRequest(renewers=[renewer])).error_code == Error.INVALID_PRINCIPAL_TYPE


def test_a_token_for_another_owner_needs_the_right(make_world):
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    world = make_world(**SECRET, authorizer_class_name=authorizer, super_users="User:root")
    request = m.CreateDelegationTokenRequest("User", "bob")
    assert as_user(world, "root").call(request).principal_name == "bob"
    assert as_user(world, "ada").call(request).error_code == Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert as_user(world, "ada").call(m.CreateDelegationTokenRequest("User", "ada")).error_code == 0


def test_tokens_that_have_ended_are_removed(tokens):
    tokens.call(m.CreateDelegationTokenRequest(max_lifetime_ms=HOUR_MS))
    tokens.advance(HOUR_MS - 1)
    assert tokens.node.cluster.tokens
    tokens.advance(1002)
    assert not tokens.node.cluster.tokens

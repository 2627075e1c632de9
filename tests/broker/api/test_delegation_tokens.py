"""Delegation tokens on a listener that authenticates nobody: as Kafka, all four calls are not allowed."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error

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

"""SASL on a listener without SASL: both requests come too late, as with Kafka."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_is_out_of_place_where_nobody_authenticates(world, version):
    answer = world.call(m.SaslHandshakeRequest("PLAIN"), version)
    assert (answer.error_code, answer.mechanisms) == (Error.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_so_is_an_authentication(world, version):
    answer = world.call(m.SaslAuthenticateRequest(b"\0alice\0secret"), version)
    assert (answer.error_code, answer.auth_bytes) == (Error.ILLEGAL_SASL_STATE, b"")
    assert answer.error_message


def test_the_connection_stays_open(world):
    world.call(m.SaslHandshakeRequest("PLAIN"))
    assert world.call(m.ApiVersionsRequest("test", "1")).error_code == 0

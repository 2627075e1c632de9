"""SCRAM: both halves say what the RFC says, agree with each other, and believe nobody without the password."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.sasl import scram
from moldau.sasl.outcome import Admitted, Denied
from moldau.sasl.scram import HASHES, ServerKeys, derive_keys, salt_password

# The exchange of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def conversation(first: str, final: str) -> list[bytes]:
    exchange = scram.client("sha256", "user", "pencil", NONCE)
    said = [next(exchange), exchange.send(first.encode())]
    with pytest.raises(StopIteration):
        exchange.send(final.encode())
    return said


def test_scram_says_what_the_rfc_says() -> None:
    assert conversation(SERVER_FIRST, SERVER_FINAL) == [f"n,,n=user,r={NONCE}".encode(), CLIENT_FINAL.encode()]


def test_scram_escapes_names() -> None:
    assert next(scram.client("sha256", "a=b,c", "p", "n")) == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("first", "final", "words"),
    [
        (SERVER_FIRST, "v=AAAA", "could not show"),
        (SERVER_FIRST, "", "could not show"),
        (SERVER_FIRST, "e=invalid-proof", "invalid-proof"),
        (SERVER_FIRST.replace(NONCE, "x"), "", "does not answer ours"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "", "does not answer ours"),
        (f"m=x,{SERVER_FIRST}", "", "does not answer ours"),
        (SERVER_FIRST.replace("4096", "1"), "", "1 iterations"),
        (SERVER_FIRST.replace("4096", "999999999"), "", "999999999 iterations"),
        (SERVER_FIRST.replace("W22", "!"), "", "makes no sense"),
        ("\xff", "", "makes no sense"),
    ],
)
def test_scram_does_not_believe_a_server_that_does_not_know_the_password(first: str, final: str, words: str) -> None:
    with pytest.raises(scram.ScramError, match=words):
        conversation(first, final)


# The server's half.


def keys_of(password: str, mechanism: str = "SCRAM-SHA-256") -> ServerKeys:
    algorithm = HASHES[mechanism]
    return ServerKeys(b"salt", *derive_keys(algorithm, salt_password(algorithm, password, b"salt", 4096))[1:], 4096)


KEYS = {(user, one): keys_of(f"{user}'s", one) for user in ("alice", "b=o,b") for one in HASHES}
DECOY = keys_of("nobody has this")
Tamper = Callable[[bytes], bytes]


def talk(mechanism: str, user: str, password: str, first: Tamper = bytes, final: Tamper = bytes) -> Admitted:
    """Let both halves talk; `first` and `final` change the client's messages on their way."""

    def find(name: str, _: object) -> tuple[str, ServerKeys, Admitted] | None:
        found = KEYS.get((name, mechanism))
        return None if found is None else (name, found, Admitted(name))

    one = scram.client(HASHES[mechanism], user, password, "abc")
    two = scram.server(mechanism, "def", find, lambda _: DECOY)
    next(two)
    challenge = two.send(first(next(one)))
    try:
        two.send(final(one.send(challenge)))
    except StopIteration as end:
        with pytest.raises(StopIteration):
            one.send(end.value.answer)
        return end.value
    raise AssertionError("the server had more to say")


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("user", ["alice", "b=o,b"])
def test_each_scram_mechanism_logs_in_its_users(mechanism: str, user: str) -> None:
    assert talk(mechanism, user, f"{user}'s").principal == f"User:{user}"


def same_failure(user: str, password: str, first: Tamper = bytes, final: Tamper = bytes) -> None:
    with pytest.raises(Denied) as caught:
        talk("SCRAM-SHA-256", user, password, first, final)
    assert str(caught.value) == scram.invalid_credentials("SCRAM-SHA-256")


def test_a_wrong_password_and_an_unknown_user_are_told_alike() -> None:
    same_failure("alice", "wrong")
    same_failure("nobody", "alice's")


def test_a_user_without_a_credential_fails_even_with_the_decoys_password() -> None:
    same_failure("nobody", "nobody has this")


@pytest.mark.parametrize("nonce", [b"r=abc", b"r=abcdefx", b"r=xbcdef"])
def test_scram_final_nonce_must_match(nonce: bytes) -> None:
    same_failure("alice", "alice's", final=lambda said: said.replace(b"r=abcdef", nonce))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\xfe",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,m=x,n=alice,r=abc",
        b"n,,n=ali=ce,r=abc",
        b"n,,n=alice,r=abc," + b"x" * 10000,
    ],
)
def test_malformed_scram_is_answered(said: bytes) -> None:
    same_failure("alice", "alice's", first=lambda _: said)


def test_authorization_id_must_be_the_user() -> None:
    same_failure("alice", "alice's", first=lambda said: said.replace(b"n,,", b"n,a=bob,"))


def test_the_header_must_be_the_one_that_was_sent() -> None:
    same_failure("alice", "alice's", final=lambda said: said.replace(b"c=biws", b"c=eSws"))


@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans())
def test_no_bytes_without_the_password_come_in(first: bytes, final: bytes, begins_well: bool) -> None:
    start = (lambda said: said) if begins_well else (lambda _: first)
    with pytest.raises(Denied):
        talk("SCRAM-SHA-256", "alice", "wrong", start, lambda _: final)


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_proof_with_one_changed_byte_is_refused(place: int, change: int) -> None:
    def damaged(said: bytes) -> bytes:
        at = place % len(said)
        return said[:at] + bytes([said[at] ^ change]) + said[at + 1 :]

    with pytest.raises(Denied):
        talk("SCRAM-SHA-256", "alice", "alice's", final=damaged)

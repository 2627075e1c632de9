"""SCRAM credentials: what is stored proves what RFC 7677 shows, and what is refused."""

import base64
import hashlib
import hmac

import pytest

from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.credentials import SHA_256, SHA_512, Upsertion, alter, describe
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

# The exchange of RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
MESSAGE = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}".encode()
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def upsertion(user="u", mechanism=SHA_256, iterations=4096, password=b"p" * 32):
    return Upsertion(user, mechanism, iterations, SALT, password)


def commit(cluster, deletions=(), upsertions=()):
    changes, answer = alter(cluster.credentials, deletions, upsertions)
    for record in changes:
        cluster.replay(record)
    return {user: refused and refused.error for user, refused in answer.items()}


def test_the_stored_keys_check_the_proof_of_the_rfc():
    cluster = Cluster()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    assert commit(cluster, [], [upsertion("user", password=salted)]) == {"user": None}
    stored = cluster.credentials["user", SHA_256]
    signed = hmac.digest(stored.stored_key, MESSAGE, "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, signed, strict=True))
    assert hashlib.sha256(client_key).digest() == stored.stored_key
    assert hmac.digest(stored.server_key, MESSAGE, "sha256") == SIGNATURE
    assert (stored.salt, stored.iterations) == (SALT, 4096)


def test_a_user_has_one_credential_for_each_mechanism():
    cluster = Cluster()
    commit(cluster, [], [upsertion()])
    commit(cluster, [], [upsertion(mechanism=SHA_512, iterations=8192), upsertion("v", iterations=16384)])
    assert len(cluster.credentials["u", SHA_512].stored_key) == 64
    both = [(SHA_256, 4096), (SHA_512, 8192)]
    assert describe(cluster.credentials, None) == describe(cluster.credentials, []) == {"u": both, "v": [(1, 16384)]}
    assert commit(cluster, [("u", SHA_256)]) == {"u": None}
    assert describe(cluster.credentials, ["u"]) == {"u": [(SHA_512, 8192)]}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (upsertion(iterations=4095), Error.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16385), Error.UNACCEPTABLE_CREDENTIAL),
        (upsertion(user=""), Error.UNACCEPTABLE_CREDENTIAL),
        (upsertion(password=b""), Error.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=3), Error.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=0), Error.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_a_credential_that_is_no_good_does_not_hinder_others(asked, error):
    cluster = Cluster()
    assert commit(cluster, [], [asked, upsertion("good")]) == {asked.user: error, "good": None}
    assert list(cluster.credentials) == [("good", SHA_256)]


def test_a_user_is_altered_once_in_a_request():
    cluster = Cluster()
    commit(cluster, [], [upsertion()])
    twice = {"u": Error.DUPLICATE_RESOURCE}
    assert commit(cluster, [("u", SHA_256)], [upsertion()]) == twice
    assert commit(cluster, [], [upsertion(), upsertion(mechanism=SHA_512)]) == twice
    assert commit(cluster, [("u", SHA_256), ("u", SHA_256), ("u", SHA_256)]) == twice
    assert list(cluster.credentials) == [("u", SHA_256)]


def test_what_is_not_there_cannot_be_removed_or_described():
    cluster = Cluster()
    assert commit(cluster, [("u", SHA_256)], [upsertion()]) == {"u": Error.RESOURCE_NOT_FOUND}
    answer = describe(cluster.credentials, ["u", "v", "v"])
    errors = {user: known.error for user, known in answer.items() if isinstance(known, Refused)}
    assert errors == {"u": Error.RESOURCE_NOT_FOUND, "v": Error.DUPLICATE_RESOURCE}

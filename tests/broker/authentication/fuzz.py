"""Random input for all that reads what strangers send: `make fuzz-gate`, or `python -m ... COUNT SEED`.

Good input, without the one secret that it would need, is damaged in a few places. Whatever comes of it, it is refused
by the errors that are meant for it, and nobody comes in. A failure prints the seed of its input, and the input itself:
keys are new for each run. Each core has a process.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from base64 import urlsafe_b64encode
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from moldau.broker.authentication.gate import Gate
from moldau.broker.connection import ANONYMOUS, Connection
from moldau.sasl import bearer, plain, scram
from moldau.sasl.bearer import InvalidToken
from moldau.sasl.jaas import parse_jaas
from moldau.sasl.kerberos_names import LocalNames, NoLocalName
from moldau.sasl.outcome import Admitted, Denied
from moldau.settings import SettingError
from moldau.tls.names import MappingRules
from moldau.tls.stores import StoreError, open_store
from moldau.tokens.web_tokens import Rules, Validator
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.errors import WireError
from tests.broker.authentication.secured import BEARER, SCRAM, plain_line
from tests.broker.conftest import World
from tests.tls.keystores import jks, self_signed

COUNT = 10_000_000
AT_ONCE = 20_000  # inputs that a process is given
SECRET = "the secret that no input has"
NOW = 1_000_000.0
WORDS = [
    b"\0",
    b"\x01",
    b",",
    b"=",
    b";",
    b'"',
    b"\\",
    b"n,,",
    b"r=",
    b"p=",
    b"tokenauth=true",
    b"\xff" * 8,
    b"\xc3\x28",
]
WORDS += [
    b"alice",
    b"admin",
    b"RULE:",
    b"$1",
    b"/",
    b"DEFAULT",
    b"required",
    b".",
    b"eyJhbGciOiJub25lIn0",
    b"=2C",
    b"\n",
]
Fuzzer = Callable[[Random], None]
CONVERSATIONS = [
    [(m.ApiVersionsRequest("x", "1"), 3), (m.SaslHandshakeRequest("PLAIN"), 1), (b"\0alice\0wrong", 2)],
    [(m.SaslHandshakeRequest("PLAIN"), 1), (b"admin\0alice\0wrong", 1), (b"\0alice\0wrong", 0)],
    [(m.SaslHandshakeRequest("SCRAM-SHA-256"), 1), (b"n,,n=alice,r=abc", 2), (b"c=biws,r=abc,p=AAAA", 2)],
    [
        (m.SaslHandshakeRequest("SCRAM-SHA-512"), 1),
        (b"n,a=alice,n=alice,r=abc,tokenauth=true", 2),
        (b"c=biws,r=a,p=AA", 2),
    ],
    [(m.SaslHandshakeRequest("OAUTHBEARER"), 1), (b"n,,\x01auth=Bearer e30.e30.\x01\x01", 2), (b"\x01", 2)],
    [(m.SaslHandshakeRequest("PLAIN"), 0), (m.MetadataRequest([]), 9), (m.SaslHandshakeRequest("PLAIN"), 1)],
]


MADE: deque[bytes] = deque(maxlen=4)  # the last pieces of input, the newest at the end


def damaged(random: Random, data: bytes) -> bytes:
    """Change some places of the data."""
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at, to = sorted(random.randint(0, len(made)) for _ in range(2))
        match random.randrange(6):
            case 0:
                made[at : at + 1] = bytes((random.randrange(256),))
            case 1:
                made[at : min(to, at + 20)] = b""
            case 2:
                made[at:at] = made[at:to][:200]
            case 3:
                made[at:at] = random.choice(WORDS)
            case 4:
                made[at:at] = random.randbytes(random.choice((1, 4, 50)))
            case _:
                del made[at:]
    MADE.append(bytes(made))
    return MADE[-1]


def talk(exchange: Any, messages: list[bytes]) -> None:
    """Send messages to the server's half of an exchange: it must not end with somebody who is admitted."""
    next(exchange)
    with suppress(Denied):
        try:
            for message in messages:
                exchange.send(message)
        except StopIteration as end:
            raise AssertionError(f"{end.value} was admitted with {messages}") from None


def fuzz_plain(random: Random) -> None:
    talk(plain.server({"alice": SECRET}.get), [damaged(random, b"\0alice\0the secret that no")])


KEYS = scram.ServerKeys(b"salt", b"k" * 32, b"s" * 32, 4096)
FINAL = b"c=biws,r=abcnonce,p=" + b"A" * 43 + b"="


def fuzz_scram(random: Random) -> None:
    server = scram.server("SCRAM-SHA-256", "nonce", lambda user, _: (user, KEYS, Admitted(user)), lambda _: KEYS)
    talk(server, [damaged(random, b"n,,n=alice,r=abc"), damaged(random, FINAL)])
    server = scram.server("SCRAM-SHA-256", "nonce", lambda user, _: (user, KEYS, Admitted(user)), lambda _: KEYS)
    talk(server, [b"n,,n=alice,r=abc", damaged(random, FINAL)])


KEY = ECKey.generate_key("P-256", {"kid": "one"})
VALIDATOR = Validator(Rules(None, ("kafka",), 0, "sub", "scope"), lambda: NOW, KeySet([KEY]), lambda: None)
CLAIMS = {"sub": "olga", "iat": NOW - 1, "exp": NOW + 60, "aud": "kafka"}
TOKEN = jwt.encode({"alg": "ES256", "kid": "one"}, CLAIMS, KEY).encode()
# The same claims signed by nobody: what is not damaged has no good signature either.
UNSIGNED = TOKEN.rpartition(b".")[0] + b"." + urlsafe_b64encode(b"s" * 64).rstrip(b"=")


def fuzz_bearer(random: Random) -> None:
    message = b"n,a=olga,\x01auth=Bearer " + UNSIGNED + b"\x01x=1\x01\x01"
    talk(bearer.server(VALIDATOR.validate, lambda _: None), [damaged(random, message), b"\x01"])


def fuzz_token(random: Random) -> None:
    token = damaged(random, TOKEN).decode("latin-1")
    with suppress(InvalidToken):
        VALIDATOR.validate(token)
        # Only bits of the signature's last letter that mean nothing may differ.
        assert token.encode("latin-1").rpartition(b".")[0] == TOKEN.rpartition(b".")[0], f"{token} was accepted"


def fuzz_jaas(random: Random) -> None:
    line = plain_line({"alice": SECRET, "bob": 'a"b;c'}).encode() + b" // who\n"
    try:
        login = parse_jaas(damaged(random, line).decode("latin-1"))
        assert login.module in {"PlainLoginModule"}, login.module
    except SettingError as error:
        assert SECRET not in str(error)


def fuzz_rules(random: Random) -> None:
    text = damaged(random, b"RULE:^CN=(.*?),OU=(.*)$/$1.$2/L,RULE:[1:$1@$0](.*@X)s/@.*//gU,DEFAULT").decode("latin-1")
    with suppress(SettingError):
        MappingRules(text).principal("CN=ada,OU=dev,O=shop")
    with suppress(SettingError, NoLocalName):
        LocalNames(text.split(","), "X").of(damaged(random, b"svc/host@X").decode("latin-1"))


PAIR = self_signed()
STORES = [PAIR.pem, jks(PAIR, "password", "password"), jks(PAIR, "password", "password", trusted=True)]


def fuzz_store(random: Random) -> None:
    with suppress(StoreError):
        open_store(damaged(random, random.choice(STORES)), "password", "password")


@cache
def make_gate_fuzzer(folder: Path) -> Fuzzer:
    lines = {"plain": plain_line({"alice": SECRET}), "scram-sha-256": SCRAM, "scram-sha-512": SCRAM}
    given = {
        f"listener.name.sasl_plaintext.{name}.sasl.jaas.config": line
        for name, line in (lines | {"oauthbearer": BEARER}).items()
    }
    mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    world = World(folder, given | {"sasl.enabled.mechanisms": mechanisms, "delegation.token.secret.key": "s"})
    node = world.node
    node.validators["SASL_PLAINTEXT"] = VALIDATOR
    talks = [[frame_of(*one) for one in conversation] for conversation in CONVERSATIONS]

    def fuzz_gate(random: Random) -> None:
        connection = Connection(7, "SASL_PLAINTEXT", "127.0.0.1:5")
        node.connect(connection)
        connection.gate = Gate(node, connection)
        for frame in random.choice(talks):
            data = damaged(random, frame) if random.random() < 0.4 else frame
            try:
                connection.gate.receive(connection, memoryview(bytearray(data)))
            except WireError:
                break
            assert connection.gate is not None and connection.principal == ANONYMOUS, "somebody came in"
            if connection.pending or connection.closing:
                world.advance(200)
                break
        node.disconnect(connection)

    return fuzz_gate


def frame_of(said: Any, version: int) -> bytes:
    request = m.SaslAuthenticateRequest(said) if isinstance(said, bytes) else said
    return frames.request_frame(request, version, 3, "visitor")[4:]


# Who makes a fuzzer with a folder, and how many of the inputs it has: what is slow has fewer.
FUZZERS: dict[str, tuple[Callable[[Path], Fuzzer], float]] = {
    "PLAIN": (lambda _: fuzz_plain, 0.25),
    "SCRAM": (lambda _: fuzz_scram, 0.2),
    "OAUTHBEARER": (lambda _: fuzz_bearer, 0.15),
    "tokens": (lambda _: fuzz_token, 0.05),
    "JAAS": (lambda _: fuzz_jaas, 0.1),
    "mapping rules": (lambda _: fuzz_rules, 0.05),
    "stores": (lambda _: fuzz_store, 0.1),
    "gate": (make_gate_fuzzer, 0.1),
}


class Inputs(NamedTuple):
    """Some of the inputs of one fuzzer, by their numbers."""

    name: str
    numbers: range
    seed: int
    folder: Path  # for what a fuzzer keeps; each process has its own below it


def feed(inputs: Inputs) -> tuple[str, int, float]:
    """Feed a fuzzer; returns its name, how many inputs it had, and the seconds that it took."""
    fuzzer, began = FUZZERS[inputs.name][0](inputs.folder / str(os.getpid())), time.monotonic()
    with _no_logs():
        for number in inputs.numbers:
            try:
                fuzzer(Random(f"{inputs.seed}/{inputs.name}/{number}"))
            except BaseException:
                made = " ".join(piece.hex() for piece in MADE)
                print(f"seed {inputs.seed}, {inputs.name}, input {number}: {made}", file=sys.stderr)
                raise
    return inputs.name, len(inputs.numbers), time.monotonic() - began


@contextmanager
def _no_logs() -> Iterator[None]:
    """Each failed login would be a line."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def shared_out(count: int, seed: int, folder: Path, at_once: int = AT_ONCE) -> Iterator[Inputs]:
    for name, (_, share) in FUZZERS.items():
        numbers = range(max(1, int(count * share)))
        for first in range(0, len(numbers), at_once):
            yield Inputs(name, numbers[first : first + at_once], seed, folder)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print(f"seed {seed}", flush=True)
    totals, seconds, began = Counter[str](), defaultdict[str, float](float), time.monotonic()
    with TemporaryDirectory() as folder, Pool(os.cpu_count()) as pool:
        for name, inputs, took in pool.imap_unordered(feed, shared_out(count, seed, Path(folder))):
            totals[name] += inputs
            seconds[name] += took
    for name, inputs in totals.items():
        print(f"{name:<14} {inputs:>10,} inputs {seconds[name]:8.1f} s")
    print(f"{'all':<14} {totals.total():>10,} inputs {time.monotonic() - began:8.1f} s on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()

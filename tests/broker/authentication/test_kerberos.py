"""Kerberos with a real KDC: who comes in, as whom, and who does not. `make kerberos` adds Java's clients and Kafka."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moldau.admin import tokens
from moldau.broker.authentication.mechanisms import check_listener
from moldau.broker.peer_security import check_peers, waits_for_logins
from moldau.client import Client, ClientError
from moldau.sasl import kerberos
from moldau.sasl.kerberos_names import LocalNames
from moldau.sasl.outcome import Admitted, Denied
from moldau.settings import SettingError, Settings
from moldau.testing.ports import free_port
from moldau.testing.process import Broker
from tests.kerberos import KRB5, REALM, SERVICE, Kdc, kdc

pytestmark = pytest.mark.needs("krb5kdc", "gssapi")
LISTENER = "SASL_PLAINTEXT"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc(tmp_path_factory.mktemp("kerberos") / "kdc") as running:
        yield running


@contextmanager
def kerberized(realm: Kdc) -> Iterator[str]:
    """Start a broker whose only users are those of the realm; yields where it listens."""
    port = free_port()
    running = Broker(
        {
            "listeners": f"{LISTENER}://localhost:{port}",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": f"RULE:[1:$1@$0](b.*@{REALM})s/@.*///U,DEFAULT",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": realm.jaas(SERVICE),
            "delegation.token.secret.key": "of this test",
            "connection.failed.authentication.delay.ms": "0",
        }
    )
    running.start()
    try:
        yield f"localhost:{port}"
        running.stop()
    finally:
        running.kill()


@pytest.fixture(scope="module")
def broker(realm: Kdc) -> Iterator[str]:
    with kerberized(realm) as address:
        yield address


def settings(broker: str, **more: str) -> dict[str, Any]:
    given = {"bootstrap.servers": broker, "security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI"}
    return given | {f"sasl.kerberos.{name}": value for name, value in more.items()}


def who(broker: str, **more: str) -> str:
    """Return whom the broker takes a client for."""
    with Client(settings(broker, **more)) as client:
        return tokens.create(client).owner


def test_a_user_comes_in_by_a_keytab_and_by_tickets(realm: Kdc, broker: str) -> None:
    assert who(broker, principal=f"ada@{REALM}", keytab=realm.keytab("ada")) == "User:ada"
    realm.run("kinit", "-k", "-t", realm.keytab("bob"), "bob")
    assert who(broker) == "User:BOB"  # a rule made it so


def test_aiokafka_writes_and_reads(realm: Kdc, broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import gssapi
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    monkeypatch.setattr("aiokafka.conn.gssapi", gssapi)  # it may have been imported before gssapi was there
    realm.run("kinit", "-k", "-t", realm.keytab("ada"), "ada")
    common: dict[str, Any] = {
        "bootstrap_servers": broker,
        "security_protocol": LISTENER,
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }

    async def run() -> bytes:
        async with AIOKafkaProducer(**common) as producer:
            await producer.send_and_wait("greetings", b"good day")
        async with AIOKafkaConsumer("greetings", auto_offset_reset="earliest", **common) as consumer:
            return (await asyncio.wait_for(consumer.getone(), 120)).value or b""

    assert asyncio.run(run()) == b"good day"


def test_a_service_without_a_key_at_the_broker_is_refused(realm: Kdc, broker: str) -> None:
    realm.add("other/localhost")
    ada = {"principal": f"ada@{REALM}", "keytab": realm.keytab("ada")}
    with pytest.raises(ClientError, match="invalid credentials with SASL mechanism GSSAPI"):
        who(broker, **ada, **{"service.name": "other"})
    with pytest.raises(ClientError, match="Kerberos failed"):  # the KDC does not know it
        who(broker, **ada, **{"service.name": "nobody"})


def exchange(realm: Kdc, reasons: list[str], user: str = "ada") -> tuple[Any, Any]:
    """Return both halves of an exchange; the server has begun."""
    accept = partial(kerberos.accept_credentials, f"{SERVICE}@{REALM}", realm.keytab(SERVICE))
    names = LocalNames(["DEFAULT"], kerberos.default_realm())
    server = kerberos.server(lambda: kerberos.acceptor(accept()), names.of, reasons.append)
    next(server)
    return kerberos.client(kerberos.initiator("kafka", "localhost", f"{user}@{REALM}", realm.keytab(user))), server


def test_both_halves_agree(realm: Kdc) -> None:
    client, server = exchange(realm, [])
    message = next(client)
    with pytest.raises(StopIteration) as end:
        while True:
            message = client.send(server.send(message))
    assert end.value.value == Admitted("ada")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_damaged_repeated_or_out_of_place_is_refused(realm: Kdc, place: int) -> None:
    """Instead of each message in turn: nothing, noise, the message of before, and the message with a bit turned."""
    for kind in ("empty", "noise", "before", "turned", "longer"):
        reasons: list[str] = []
        client, server = exchange(realm, reasons)
        message, before = next(client), b"before"
        for _ in range(place):
            before, message = message, client.send(server.send(message))
        turned = bytes((*message[:-1], message[-1] ^ 1)) if message else b"\x01"
        sent = {"empty": b"", "noise": b"\x60\x82" * 40, "before": before, "turned": turned, "longer": message + b"x"}
        if sent[kind] == message:
            continue
        with pytest.raises(Denied, match="invalid credentials"):
            server.send(sent[kind])
        assert reasons


def test_a_message_of_a_login_cannot_be_used_again(realm: Kdc) -> None:
    client, server = exchange(realm, [])
    message = next(client)
    assert server.send(message)
    _, again = exchange(realm, [])
    with pytest.raises(Denied):
        again.send(message)


def refusal(line: str, rules: str = "DEFAULT") -> str:
    given = {"sasl.enabled.mechanisms": "GSSAPI", "sasl.jaas.config": line}
    with pytest.raises(SettingError) as caught:
        check_listener(Settings.load(given | {"sasl.kerberos.principal.to.local.rules": rules}), LISTENER)
    return str(caught.value)


def test_a_listener_on_which_nobody_could_come_in_does_not_start(realm: Kdc, tmp_path: Path) -> None:
    line = realm.jaas(SERVICE)
    assert "GSSAPI needs useKeyTab=true" in refusal("com.sun.security.auth.module.Krb5LoginModule required;")
    assert "cannot be read: No such file" in refusal(line.replace(realm.keytab(SERVICE), str(tmp_path / "none")))
    assert "does not serve kafka/localhost" in refusal(line.replace(realm.keytab(SERVICE), realm.keytab("ada")))
    (tmp_path / "noise").write_bytes(b"\x05\x02noise")
    assert "does not serve" in refusal(line.replace(realm.keytab(SERVICE), str(tmp_path / "noise")))
    assert "a rule is DEFAULT or" in refusal(line, "RULE:x")
    check_listener(Settings.load({"sasl.enabled.mechanisms": "GSSAPI", "sasl.jaas.config": line}), LISTENER)


def test_brokers_need_the_name_of_their_service_to_log_in_at_each_other(realm: Kdc) -> None:
    given = {
        "listener.security.protocol.map": f"{LISTENER}:{LISTENER},CONTROLLER:PLAINTEXT",
        "listeners": f"{LISTENER}://localhost:9092",
        "controller.listener.names": "CONTROLLER",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.jaas.config": realm.jaas(SERVICE),
    }
    with pytest.raises(SettingError, match=r"sasl\.kerberos\.service\.name.* it needs the first part"):
        check_peers(Settings.load(given))
    for more in (
        {"sasl.kerberos.service.name": "kafka"},
        {"sasl.jaas.config": realm.jaas(SERVICE).replace("useKeyTab", "serviceName=kafka useKeyTab")},
    ):
        check_peers(Settings.load(given | more))
    assert waits_for_logins(Settings.load(given))
    assert not waits_for_logins(Settings.load(given | {"sasl.mechanism.inter.broker.protocol": "PLAIN"}))


def test_a_kdc_that_is_silent_or_down_is_reported_in_time(realm: Kdc, broker: str) -> None:
    realm.add("eve")  # there are no tickets for her yet
    file = Path(realm.environment["KRB5_CONFIG"])
    before, eve = file.read_text(), {"principal": f"eve@{REALM}", "keytab": realm.keytab("eve")}
    limit = {"retries": 0, "socket.connection.setup.timeout.ms": 1000}
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            file.write_text(KRB5.format(realm=REALM, port=silent.getsockname()[1]))
            begin = time.monotonic()
            with (
                pytest.raises(ClientError, match="no KDC answered within"),
                Client(settings(broker, **eve) | limit) as one,
            ):
                tokens.create(one)
            assert time.monotonic() - begin < 30  # the system's library waits for 50 s
        with pytest.raises(ClientError, match="Cannot contact any KDC"), Client(settings(broker, **eve) | limit) as one:
            tokens.create(one)
    finally:
        file.write_text(before)


def test_a_new_keytab_counts_from_the_next_login_on(realm: Kdc, broker: str) -> None:
    Path(realm.keytab(SERVICE)).unlink()
    ada = {"principal": f"ada@{REALM}", "keytab": realm.keytab("ada")}
    with pytest.raises(ClientError, match="invalid credentials"):
        who(broker, **ada)
    realm.run("kadmin.local", "-q", f"ktadd -k {realm.keytab(SERVICE)} {SERVICE}")
    realm.run("kinit", "-k", "-t", realm.keytab("bob"), "bob")  # tickets for the new key
    assert who(broker) == "User:BOB"

"""Kerberos between Java and us, `make kerberos`: Java's tools on our broker, our client on Apache Kafka, its rules, and
clusters whose nodes log in at each other.

It takes a minute, so `make test` has only tests/broker/authentication/test_kerberos.py.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moldau.admin import tokens
from moldau.client import CONTROLLER, Client, ClientError, Record, build, check, produce
from moldau.wire import messages as m
from tests.broker.authentication.test_kerberos import LISTENER, kerberized, settings
from tests.client.apache import apache_kafka
from tests.cluster.mixed import KAFKA as APACHE
from tests.cluster.mixed import MOLDAU, cluster, eventually
from tests.conformance.java_tools import Tools, started
from tests.conformance.sasl.scenarios import Talk
from tests.kerberos import REALM, SERVICE, Kdc, kdc
from tests.sasl.kerberos_cases import RULES

pytestmark = pytest.mark.needs("krb5kdc", "gssapi", "java")
KAFKA = """
delegation.token.secret.key=of this test
connection.failed.authentication.delay.ms=0
listener.name.sasl_plaintext.sasl.enabled.mechanisms=GSSAPI
listener.name.sasl_plaintext.gssapi.sasl.jaas.config={}
sasl.kerberos.service.name=kafka
sasl.kerberos.principal.to.local.rules=RULE:[1:$1@$0](b.*@{})s/@.*///U,DEFAULT
"""
NAMES = """
import java.util.*;
import org.apache.kafka.common.security.kerberos.*;

public class Names {
    public static void main(String[] args) {
        for (int i = 1; i < args.length; i += 2) {
            try {
                KerberosShortNamer rules = KerberosShortNamer.fromUnparsedRules(args[0], List.of(args[i].split(",")));
                System.out.println(rules.shortName(KerberosName.parse(args[i + 1])));
            } catch (Exception e) { System.out.println("-"); }
        }
    }
}
"""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc(tmp_path_factory.mktemp("kerberos") / "kdc") as running:
        yield running


def test_rules_give_the_names_that_kafkas_give(kafka_libs: Path, tmp_path: Path) -> None:
    program = tmp_path / "Names.java"
    program.write_text(NAMES)
    arguments = [text for rules, principal, _ in RULES for text in (rules, principal)]
    command = ["java", "-cp", f"{kafka_libs}/*", str(program), REALM, *arguments]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
    assert lines == [expected or "-" for _, _, expected in RULES]


def test_javas_tools_come_in(kafka_libs: Path, realm: Kdc, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    lines = [f"security.protocol={LISTENER}", "sasl.mechanism=GSSAPI", "sasl.kerberos.service.name=kafka"]
    config.write_text("\n".join([*lines, f"sasl.jaas.config={realm.jaas('ada')}"]))
    with kerberized(realm) as address, started(kafka_libs) as jvm:
        run = Tools(jvm, address)
        run("kafka-topics", "--create", "--topic", "from-java", "--command-config", str(config))
        run("kafka-console-producer", "--topic", "from-java", "--command-config", str(config), stdin="good day\n")
        read = ("--topic", "from-java", "--from-beginning", "--max-messages", "1", "--command-config", str(config))
        assert run("kafka-console-consumer", *read).lines()[0] == "good day"
        created = run(
            *("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", "--command-config", str(config))
        )
        assert "User:ada" in created.out


def garbage(port: int) -> dict[str, Any]:
    """Return what is answered to tokens that are none."""
    found: dict[str, Any] = {}
    for name, token in {"empty": b"", "noise": b"\x60\x82" * 40, "text": b"hello"}.items():
        talk = Talk(port)
        with closing(talk.socket):
            assert not talk.ask(m.SaslHandshakeRequest("GSSAPI"), 1).error_code
            try:
                answer = talk.ask(m.SaslAuthenticateRequest(token), 2)
                found[name] = (answer.error_code, answer.error_message)
            except EOFError:
                found[name] = "closed"
    return found


def test_our_client_comes_in_to_kafka_and_garbage_is_answered_alike(
    kafka_libs: Path, realm: Kdc, tmp_path: Path
) -> None:
    with apache_kafka(kafka_libs, tmp_path, KAFKA.format(realm.jaas(SERVICE), REALM)) as kafka:
        address = f"localhost:{kafka.ports[LISTENER]}"
        names = {}
        for user in ("ada", "bob"):
            given = settings(address, principal=f"{user}@{REALM}", keytab=realm.keytab(user))
            with Client(given) as client:
                names[user] = tokens.create(client).owner
        with pytest.raises(ClientError):
            Client(settings(address, principal=f"eve@{REALM}", keytab=realm.keytab("ada"))).send(m.MetadataRequest())
        theirs = garbage(kafka.ports[LISTENER])
    with kerberized(realm) as address:
        assert garbage(int(address.rpartition(":")[2])) == theirs, json.dumps(theirs)
    assert names == {"ada": "User:ada", "bob": "User:BOB"}


@pytest.mark.parametrize("kinds", [(MOLDAU, MOLDAU, MOLDAU), (MOLDAU, MOLDAU, APACHE)], ids=["moldau", "mixed"])
def test_nodes_log_in_at_each_other(kafka_libs: Path, realm: Kdc, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Sessions are short, so that each node logs in many times. The authorizer knows the nodes by their principal."""
    session_ms = 3000
    given = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.plaintext.gssapi.sasl.jaas.config": realm.jaas(SERVICE),
        "listener.name.controller.gssapi.sasl.jaas.config": realm.jaas(SERVICE),
        "connections.max.reauth.ms": str(session_ms),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka;User:ada",
    }
    nodes = {number: (kind, "broker,controller") for number, kind in enumerate(kinds, 1)}
    with cluster(kafka_libs, tmp_path, nodes, host="localhost", **given) as made:
        login = settings(made.bootstrap, principal=f"ada@{REALM}", keytab=realm.keytab("ada"))
        with Client(login) as client:
            eventually(lambda: len(client.refresh().brokers) == 3, 300)
            wanted = [m.CreateTopicsRequest_CreatableTopic("t", 3, 3)]
            check(client.send(m.CreateTopicsRequest(wanted), CONTROLLER))
            until = time.monotonic() + 4 * session_ms / 1000
            while time.monotonic() < until:  # through the ends of several sessions
                for partition in range(3):
                    produce(client, "t", partition, build([Record(value=b"v")]), acks=-1)

            def replicated() -> bool:
                topics = [m.MetadataRequest_MetadataRequestTopic(name="t")]
                rows = client.send(m.MetadataRequest(topics)).topics[0].partitions
                return all(sorted(row.isr_nodes) == [1, 2, 3] for row in rows)

            eventually(replicated, 300)

"""Apache Kafka from its jars with listeners of every security protocol, for the tests that need one."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from moldau.client import CONTROLLER, Client, check
from moldau.testing.ports import free_ports
from moldau.wire import messages as m
from tests.conformance.differential.brokers import CLUSTER_ID, JAVA, LOGGING, START_S, await_port

USER, PASSWORD = "alice", "alice's, = secret"
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=k;"
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
connections.max.reauth.ms=60000
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.ssl.ssl.client.auth=required
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
"""


@dataclass
class Apache:
    """A running Kafka: where it listens, and the certificates."""

    ports: dict[str, int]
    folder: Path
    authority: trustme.CA = field(repr=False)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.ports['PLAINTEXT']}"

    def settings(self, protocol: str, **more: Any) -> dict[str, Any]:
        """What a client needs for a listener; keywords add to it or replace."""
        given: dict[str, Any] = {
            "bootstrap.servers": f"localhost:{self.ports[protocol]}",
            "broker.address.family": "v4",
            "security.protocol": protocol.lower(),
        }
        if "SSL" in protocol:
            given["ssl.ca.location"] = str(self.folder / "ca.pem")
        if protocol.startswith("SASL"):
            given |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": USER, "sasl.password": PASSWORD}
        return given | {name.replace("_", "."): value for name, value in more.items()}


@contextmanager
def apache_kafka(libs: Path, folder: Path, more: str = "") -> Iterator[Apache]:
    """Kafka on free ports, with the user in its SCRAM credentials, and more settings; ended whatever happens."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "broker.pem").write_bytes(_identity(authority.issue_cert("localhost")))
    client = authority.issue_cert("client.example", common_name="client")
    client.private_key_pem.write_to_path(str(folder / "client.key"))
    client.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    *found, controller = free_ports(len(LISTENERS) + 1)
    ports = dict(zip(LISTENERS, found, strict=True))
    properties, log = folder / "server.properties", folder / "kafka.log"
    listeners = ",".join(f"{name}://localhost:{port}" for name, port in ports.items())
    text = SETTINGS.format(controller=controller, listeners=listeners, folder=folder)
    properties.write_text(text + "\n".join(_logins()) + more)
    java = [*JAVA, *LOGGING, "-Djava.net.preferIPv4Stack=true", "-cp", f"{libs}/*"]
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=START_S)
    with log.open("wb") as out:
        command = [*java, "kafka.Kafka", str(properties)]
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        await_port(process, ports["PLAINTEXT"], log)
        kafka = Apache(ports, folder, authority)
        _add_user(kafka)
        yield kafka
    finally:
        process.kill()
        process.wait()


def _identity(issued: trustme.LeafCert) -> bytes:
    """Key and certificate; Kafka reads keys in PKCS 8 alone."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    options = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*options) + issued.cert_chain_pems[0].bytes()


def _logins() -> Iterator[str]:
    """What each SASL listener checks against."""
    name = PASSWORD.replace('"', '\\"')
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        yield f'{prefix}.plain.sasl.jaas.config={PLAIN} user_{USER}="{name}" user_admin="admin-secret";'
        yield f"{prefix}.scram-sha-256.sasl.jaas.config={SCRAM}"
        yield f"{prefix}.scram-sha-512.sasl.jaas.config={SCRAM}"
        yield f"{prefix}.oauthbearer.sasl.jaas.config={BEARER}"


def _add_user(kafka: Apache) -> None:
    """Through the client itself: the credentials are made as KIP-554 says, with the salted password sent."""
    with Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        for mechanism, algorithm in ((1, "sha256"), (2, "sha512")):
            salted = hashlib.pbkdf2_hmac(algorithm, PASSWORD.encode(), b"salt", 4096)
            row = m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(USER, mechanism, 4096, b"salt", salted)
            check(client.send(m.AlterUserScramCredentialsRequest(upsertions=[row]), CONTROLLER))

"""Brokers whose doors for clients are SSL and SASL_SSL, Moldau's or Apache Kafka's, on the same settings."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from moldau.admin import users
from moldau.client import Client
from moldau.tls.issuing import issue, make_authority
from moldau.tls.stores import Identity, pem
from tests.cluster.mixed import Cluster, cluster
from tests.conformance.token_server import CLIENT, SCOPE, SECRET, TokenServer, token_server

USER = "suite"  # who may do everything until there are ACLs, as everybody on the plain broker of the suites
KAFKA = "org.apache.kafka.common.security"
SCRAM = f"{KAFKA}.scram.ScramLoginModule required;"
BEARER = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required;"
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.{}={}"
DOORS = {"TLS": "SSL", "SASL": "SASL_SSL", "OPEN": "SASL_PLAINTEXT"}  # names of listeners, and their protocols
WAYS = {"ssl": "TLS", "sasl_ssl": "SASL", "oidc": "SASL"}


@dataclass(frozen=True)
class Realm:
    """Certificates, the OAuth server and a password, in a folder."""

    folder: Path
    tokens: TokenServer
    session_s: int
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)

    def __post_init__(self) -> None:
        authority, other = make_authority("the suites' authority"), make_authority("another authority")
        broker = issue(authority, "broker", ["127.0.0.1", "localhost"])
        (self.folder / "broker.pem").write_bytes(broker.key_pem() + pem(broker.chain))
        (self.folder / "ca.pem").write_bytes(pem(authority.chain))
        (self.folder / "cas.pem").write_bytes(pem(other.chain + authority.chain))
        (self.folder / "ca.der").write_bytes(authority.certificate.public_bytes(Encoding.DER))
        self._write_client(issue(authority, USER, []), authority)

    def _write_client(self, client: Identity, authority: Identity) -> None:
        """Write a client's key and certificate in all forms that librdkafka's tests read."""
        hidden, form = BestAvailableEncryption(self.password.encode()), PrivateFormat.PKCS8
        assert isinstance(client.key, EllipticCurvePrivateKey)
        store = pkcs12.serialize_key_and_certificates(
            b"client", client.key, client.certificate, [authority.certificate], hidden
        )
        files = {
            "client.p12": store,
            "client.key.pem": client.key.private_bytes(Encoding.PEM, form, hidden),
            "client.open.pem": client.key_pem(),
            "client.key.der": client.key.private_bytes(Encoding.DER, form, NoEncryption()),
            "client.pem": pem(client.chain[:1]),
            "client.der": client.certificate.public_bytes(Encoding.DER),
        }
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

    def settings(self) -> dict[str, str]:
        """Return the settings of a broker, those that only Kafka or only Moldau has among them."""
        keys = f"file://{self.tokens.keys}"
        scram = {
            f"listener.name.{door}.scram-sha-{bits}.sasl.jaas.config": SCRAM
            for door in ("sasl", "open")
            for bits in (256, 512)
        }
        named = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **DOORS}
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in named.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "listener.name.tls.ssl.client.auth": "required",
            "listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.open.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            **scram,
            "listener.name.sasl.oauthbearer.sasl.jaas.config": BEARER,
            "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": (
                f"{KAFKA}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.audience": "kafka",
            "moldau.sasl.oauthbearer.allowed.urls": keys,
            "connections.max.reauth.ms": str(self.session_s * 1000),
            "super.users": "User:ANONYMOUS",  # brokers among themselves
        }

    def login(self, way: str, nodes: Cluster) -> Login:
        return Login(self, way, nodes)


@dataclass(frozen=True)
class Login:
    """How the suites log in, by one of the ways."""

    realm: Realm
    way: str
    nodes: Cluster

    @property
    def bootstrap(self) -> str:
        return self.nodes.addresses(WAYS[self.way])

    @property
    def has_sasl(self) -> bool:
        return self.way != "ssl"

    @property
    def ca(self) -> Path:
        return self.realm.folder / "ca.pem"

    @property
    def librdkafka(self) -> Mapping[str, str]:
        folder = self.realm.folder
        own = {
            "security.protocol": DOORS[WAYS[self.way]],
            "ssl.ca.location": str(self.ca),
            "ssl.certificate.location": f"{folder}/client.pem",
            "ssl.key.location": f"{folder}/client.key.pem",
            "ssl.key.password": self.realm.password,
        }
        match self.way:
            case "sasl_ssl":
                user = {"sasl.username": USER, "sasl.password": self.realm.password}
                return {**own, "sasl.mechanisms": "SCRAM-SHA-512", **user}
            case "oidc":
                return {
                    **own,
                    "sasl.mechanisms": "OAUTHBEARER",
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.client.id": CLIENT,
                    "sasl.oauthbearer.client.secret": SECRET,
                    "sasl.oauthbearer.scope": SCOPE,
                    "sasl.oauthbearer.extensions": "team=suites",
                    "sasl.oauthbearer.token.endpoint.url": self.realm.tokens.url("token"),
                }
            case _:
                return own

    @property
    def environment(self) -> Mapping[str, str]:
        """Return where librdkafka's tests find certificates and the OAuth server."""
        names = {
            "SSL_pkcs": "client.p12",
            "SSL_pub_pem": "client.pem",
            "SSL_pub_der": "client.der",
            "SSL_priv_pem": "client.key.pem",
            "SSL_priv_der": "client.key.der",
            "SSL_ca_pem": "ca.pem",
            "SSL_ca_der": "ca.der",
            "SSL_all_cas_pem": "cas.pem",
        }
        files = {name: str(self.realm.folder / file) for name, file in names.items()}
        secret = {"SSL_password": self.realm.password, "SSL_client_auth": "required"}
        return {**files, **secret, **(self.realm.tokens.environment if self.way == "oidc" else {})}

    @property
    def franz_go(self) -> Mapping[str, str]:
        folder = self.realm.folder
        return {
            "KGO_TEST_TLS": f"ca:{self.ca},cert:{folder}/client.pem,key:{folder}/client.open.pem",
            "KGO_TEST_SCRAM": f"{USER}:{self.realm.password}",
            "KGO_TEST_SCRAM_SEEDS": self.nodes.addresses("OPEN"),  # for two tests, which know no TLS
        }

    @property
    def java(self) -> str:
        trust = f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        if self.way == "ssl":
            own = f"ssl.keystore.type=PEM\nssl.keystore.location={self.realm.folder}/broker.pem\n"
            return f"security.protocol=SSL\n{trust}{own}"
        login = f'username="{USER}" password="{self.realm.password}";'
        module = SCRAM.removesuffix(";")
        return f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n{trust}sasl.jaas.config={module} {login}\n"


@contextmanager
def secured_nodes(
    kind: str, libs: Path, folder: Path, settings: Mapping[str, str], count: int = 1, session_s: int = 10
) -> Iterator[tuple[Cluster, Realm]]:
    """Run nodes of Moldau or Apache Kafka, with one user; `settings` are added to what the realm needs.

    After `session_s` seconds clients authenticate again.
    """
    nodes = dict.fromkeys(range(1, count + 1), (kind, "broker,controller"))
    with token_server(folder) as tokens, pytest.MonkeyPatch.context() as patch:
        realm = Realm(folder, tokens, session_s)
        allowed = {"urls": f"file://{tokens.keys}", "files": tokens.keys}
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(ALLOWED.format(*pair) for pair in allowed.items()))
        with cluster(libs, folder, nodes, doors=tuple(DOORS), **settings, **realm.settings()) as made:
            with Client({"bootstrap.servers": made.bootstrap}) as client:
                for mechanism in users.MECHANISMS:
                    users.alter(client, USER, {mechanism: (realm.password, users.ITERATIONS)})
            yield made, realm

"""A broker's settings with a listener of each kind, and those of clients for them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from joserfc import jwt
from joserfc.jwk import ECKey

from moldau.testing.ports import free_ports

KAFKA = "org.apache.kafka.common.security"
PLAIN = f"{KAFKA}.plain.PlainLoginModule required"
SCRAM = f"{KAFKA}.scram.ScramLoginModule required;"
BEARER = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required;"
PASSWORD = 'alice\'s, = "secret"'
USERS = {"alice": PASSWORD, "admin": "admin-secret", "bob": "bob-secret"}
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def plain_line(users: dict[str, str] = USERS, **own: str) -> str:
    pairs = own | {f"user_{name}": password for name, password in users.items()}
    quoted = (name + '="' + value.replace('"', '\\"') + '"' for name, value in pairs.items())
    return " ".join((PLAIN, *quoted)) + ";"


@dataclass
class Secured:
    """Certificates, keys and ports, in a folder."""

    folder: Path
    ports: dict[str, int] = field(init=False)
    signer: ECKey = field(init=False, repr=False)
    authority: trustme.CA = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ca, folder = trustme.CA(), self.folder
        ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        self.authority = ca
        (folder / "broker.pem").write_bytes(self.identity())
        client = ca.issue_cert("client.example", common_name="client")
        client.private_key_and_cert_chain_pem.write_to_path(str(folder / "client.pem"))
        trustme.CA().issue_cert("x").private_key_and_cert_chain_pem.write_to_path(str(folder / "stranger.pem"))
        self.signer = ECKey.generate_key("P-256", {"kid": "one"})
        (folder / "jwks.json").write_text(json.dumps({"keys": [self.signer.as_dict(private=False)]}))
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))

    def identity(self) -> bytes:
        """A key and a certificate of the broker; the name is always the same."""
        issued = self.authority.issue_cert("localhost", "127.0.0.1", organization_unit_name="broker")
        return issued.private_key_and_cert_chain_pem.bytes()

    def broker(self, **more: str) -> dict[str, str]:
        """The settings of a broker with all listeners; keywords add to them or replace."""
        keys = f"file://{self.folder}/jwks.json"
        given = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "ssl.keystore.location": f"{self.folder}/broker.pem",
            "ssl.truststore.location": f"{self.folder}/ca.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "moldau.sasl.oauthbearer.allowed.urls": keys,
            "sasl.oauthbearer.expected.audience": "kafka",
            "delegation.token.secret.key": "shared by all brokers",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
        }
        lines = {"plain": plain_line(), "scram-sha-256": SCRAM, "scram-sha-512": SCRAM, "oauthbearer": BEARER}
        for listener in ("sasl_plaintext", "sasl_ssl"):
            given |= {f"listener.name.{listener}.{name}.sasl.jaas.config": line for name, line in lines.items()}
        return given | {name.replace("__", "-").replace("_", "."): value for name, value in more.items()}

    def client(self, protocol: str, mechanism: str = "", user: str = "alice", **more: Any) -> dict[str, Any]:
        """The settings of a client."""
        given: dict[str, Any] = {
            "bootstrap.servers": f"127.0.0.1:{self.ports[protocol]}",
            "security.protocol": protocol.lower(),
        }
        if protocol.endswith("SSL"):
            given["ssl.ca.location"] = str(self.folder / "ca.pem")
        if mechanism == "OAUTHBEARER":
            given |= {"sasl.mechanism": mechanism, "oauth_cb": lambda _: (self.token(user), time.time() + 300)}
        elif mechanism:
            given |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": USERS[user]}
        return given | {name.replace("_", "."): value for name, value in more.items()}

    def token(self, user: str, seconds: int = 300, **claims: Any) -> str:
        now = int(time.time())
        content = {"sub": user, "iat": now, "exp": now + seconds, "aud": "kafka", **claims}
        return jwt.encode({"alg": "ES256", "kid": "one"}, content, self.signer)

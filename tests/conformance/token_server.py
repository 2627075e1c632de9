"""An OAuth server on loopback: tokens for a client's secret, for a signed assertion, and as Azure's metadata service.

Its addresses: `/token` answers with signed tokens, `/expired` with tokens that have ended, `/noise` with no token.
"""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

CLIENT, SECRET, SCOPE = "suites", "of the OAuth client", "kafka"
KEY_PASSWORD = "of the assertion's key"
ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
IMDS = ("api-version", "resource", "client_id")  # what Azure's metadata service wants to be asked with
LIFE_S = 10  # shorter than the tests: sessions end, and tokens are asked for again


@dataclass
class TokenServer:
    """The keys, in a folder, and the port while it runs."""

    folder: Path
    port: int = 0
    signer: ECKey = field(init=False, repr=False)
    client_key: RSAKey = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.signer = ECKey.generate_key("P-256", {"kid": "one", "use": "sig", "alg": "ES256"})
        self.keys.write_text(json.dumps({"keys": [self.signer.as_dict(private=False)]}))
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        hidden = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
        for name, encryption in (("client.key", serialization.NoEncryption()), ("client-hidden.key", hidden)):
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
            (self.folder / name).write_bytes(made.private_bytes(*form))
        self.client_key = RSAKey.import_key((self.folder / "client.key").read_bytes())

    @property
    def keys(self) -> Path:
        return self.folder / "jwks.json"

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what librdkafka's tests look for."""
        return {
            "VALID_OIDC_URL": self.url("token"),
            "INVALID_OIDC_URL": self.url("noise"),
            "EXPIRED_TOKEN_OIDC_URL": self.url("expired"),
            "OAUTHBEARER_CLIENT_PRIVATE_KEY": str(self.folder / "client.key"),
            "OAUTHBEARER_CLIENT_PRIVATE_KEY_ENCRYPTED": str(self.folder / "client-hidden.key"),
            "OAUTHBEARER_CLIENT_PRIVATE_KEY_PASSWORD": KEY_PASSWORD,
        }

    def token(self, ends_in_s: int) -> dict[str, Any]:
        now = int(time.time())
        claims = {"sub": "suite", "client_id": "suite", "aud": "kafka", "iat": now - 60, "exp": now + ends_in_s}
        made = jwt.encode({"alg": "ES256", "kid": "one"}, claims, self.signer)
        return {"access_token": made, "token_type": "Bearer", "expires_in": ends_in_s}

    def admits(self, form: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        """Say whether somebody who asks with these fields and headers gets a token."""
        if form.get("scope") != SCOPE:
            return False
        if form.get("grant_type") == ASSERTION:
            try:
                jwt.decode(form.get("assertion", ""), self.client_key, algorithms=["RS256"])
            except (JoseError, ValueError):
                return False
            return True
        known = b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        return form.get("grant_type") == "client_credentials" and headers.get("Authorization") == f"Basic {known}"


@contextmanager
def token_server(folder: Path) -> Iterator[TokenServer]:
    made = TokenServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = fields(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.answer(made.admits(form, {"Authorization": self.headers["Authorization"] or ""}))

        def do_GET(self) -> None:
            form = fields(urlsplit(self.path).query)
            self.answer(self.headers["Metadata"] == "true" and all(form.get(name) for name in IMDS))

        def answer(self, admitted: bool) -> None:
            kinds = {"/token": LIFE_S, "/expired": -3600}
            ends = kinds.get(urlsplit(self.path).path)
            content = {"access_token": "noise"} if ends is None else made.token(ends)
            data = json.dumps(content if admitted else {"error": "invalid_request"}).encode()
            self.send_response(200 if admitted else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def fields(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}

"""Signed tokens (JWT), of OAUTHBEARER (KIP-768) and of HTTP: signature, times, issuer and audience.

Only signatures with public keys count; a token that names another algorithm, `none` among them, is refused whatever it
holds. `moldau.sasl.oauthbearer.unsecured` lets unsigned ones in, for tests.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.sasl.bearer import InvalidToken

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MOST_CHARACTERS = 64 * 1024
MOST_SECONDS = 1 << 40  # beyond any clock


@dataclass(frozen=True, slots=True)
class Rules:
    """What a token must say."""

    issuer: str | None
    audience: tuple[str, ...]
    skew_s: int
    subject_claim: str
    scope_claim: str

    @classmethod
    def of(cls, get: Callable[[str], Any]) -> Rules:
        """Read the rules from settings, which `get` returns by what follows `sasl.oauthbearer.` in their names."""
        names = "expected.issuer", "expected.audience", "clock.skew.seconds", "sub.claim.name", "scope.claim.name"
        issuer, audience, skew, subject, scope = map(get, names)
        return cls(issuer, tuple(audience), skew, subject, scope)

    def check(self, claims: Mapping[str, Any], now_s: float) -> tuple[str, int]:
        """Return the subject and when the token ends, in milliseconds; raises InvalidToken."""
        ends, issued, begins = (_time(claims, name) for name in ("exp", "iat", "nbf"))
        if ends is None:
            raise InvalidToken("it does not say when it ends")
        if ends <= now_s - self.skew_s:
            raise InvalidToken("it has ended")
        if any(time is not None and time > now_s + self.skew_s for time in (issued, begins)):
            raise InvalidToken("it has not begun")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("it has another issuer")
        meant = claims.get("aud")
        audience = meant if isinstance(meant, list) else [meant]
        if self.audience and not any(one in audience for one in self.audience):
            raise InvalidToken("it is for another audience")
        scope = claims.get(self.scope_claim, "")
        if not isinstance(scope, str) and not (isinstance(scope, list) and all(isinstance(one, str) for one in scope)):
            raise InvalidToken(f"its claim {self.scope_claim} is neither a text nor a list of texts")
        subject = claims.get(self.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise InvalidToken(f"its claim {self.subject_claim} names nobody")
        return subject, int(ends * 1000)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_SECONDS:
        raise InvalidToken(f"its claim {name} is not a time")
    return value


def signed_claims(token: str, keys: Any) -> Mapping[str, Any]:
    """Return the claims of a token that one of the keys has signed; raises InvalidToken, KeyError for another key."""
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError

    if len(token) > MOST_CHARACTERS:
        raise InvalidToken(f"it has more than {MOST_CHARACTERS} characters")
    try:
        claims = jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
    except InvalidKeyIdError:
        raise KeyError("its key") from None
    except JoseError as error:
        raise InvalidToken(f"it is not accepted ({type(error).__name__})") from None
    except (ValueError, TypeError, RecursionError):
        raise InvalidToken("it cannot be read") from None
    return claims


def unsigned_claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a token without a signature; raises InvalidToken."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2] or len(token) > MOST_CHARACTERS:
        raise InvalidToken("it is not an unsigned token")
    try:
        head, claims = (json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except (ValueError, RecursionError):
        raise InvalidToken("it cannot be read") from None
    if not isinstance(head, dict) or not isinstance(claims, dict) or head.get("alg") != "none":
        raise InvalidToken("it is not an unsigned token")
    return claims


@dataclass(slots=True)
class Validator:
    """Checks the tokens of one listener. `keys` are replaced from outside; `ask` says that some may be missing."""

    rules: Rules
    now_s: Callable[[], float]
    keys: Any = None  # None: tokens are not signed
    ask: Callable[[], None] = lambda: None

    def validate(self, token: str) -> tuple[str, int]:
        """Return subject and end of a token; raises InvalidToken."""
        return self.rules.check(self.claims(token), self.now_s())

    def claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token that is signed as it must be; `Rules.check` checks them. Raises InvalidToken."""
        if self.keys is None:
            return unsigned_claims(token)
        try:
            return signed_claims(token, self.keys)
        except KeyError:
            self.ask()
            raise InvalidToken("its key is unknown") from None

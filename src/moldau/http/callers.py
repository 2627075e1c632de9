"""Who calls a service: found by a password, a token or a certificate, with roles that say what the caller may do.

A viewer reads, an editor changes what is in the service, an admin changes how it works and who may use it. Each route
has the least role that it needs; it is checked on the route that was found, so no spelling of a path avoids it.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from moldau.http.users import User, Users
from moldau.settings import ServiceSettings, SettingError

VIEWER, EDITOR, ADMIN = "viewer", "editor", "admin"
RANKS = {VIEWER: 1, EDITOR: 2, ADMIN: 3}
READ_ONLY = "read-only"  # another word for a viewer
ANY_ROLE = "*"
NONE, BASIC, BEARER, CERTIFICATE = "NONE", "BASIC", "BEARER", "CERTIFICATE"
METHODS = (NONE, BASIC, BEARER, CERTIFICATE)
CERTIFICATE_SCOPE = "moldau.certificate"  # where a connection leaves the client's certificate
THREADS = 2  # that hash passwords: more would take the machine from those who are in


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as what, and how that is known."""

    name: str
    roles: frozenset[str]
    how: str

    def may(self, role: str) -> bool:
        """Say whether the caller has this role or a higher one."""
        return any(RANKS.get(own, 0) >= RANKS[role] for own in self.roles)


ANYBODY = Caller("ANONYMOUS", frozenset((ADMIN,)), NONE)
SIGNED = Caller("a worker", frozenset((ADMIN,)), "SIGNATURE")


def ranked(roles: Iterable[str], default: str) -> frozenset[str]:
    """Return roles with a rank among them: `read-only` is a viewer, and who has none has the default."""
    known = frozenset(VIEWER if role.lower() == READ_ONLY else role for role in roles)
    return known if known & RANKS.keys() or not default else known | {default}


class Callers:
    """Finds out who calls, by the methods of `authentication.method`."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.methods = tuple(dict.fromkeys(one.upper() for one in settings["authentication.method"]))
        for one in self.methods:
            if one not in METHODS or (one == NONE and len(self.methods) > 1):
                text = ",".join(self.methods)
                raise SettingError("authentication.method", text, f"it is NONE, or some of {', '.join(METHODS[1:])}")
        self._default = settings["authentication.role.default"].lower()
        self._needed = frozenset(settings["authentication.roles"])
        self._realm = settings["authentication.realm"]
        path = settings["authentication.users.file"]
        if BASIC in self.methods and not path:
            raise SettingError("authentication.users.file", path, "BASIC needs the file of users")
        self.users = Users(path) if path and self.is_closed else None
        self._tokens = _Tokens(settings) if BEARER in self.methods else None
        self._rules = _mapping_rules(settings) if CERTIFICATE in self.methods else None
        self._threads = ThreadPoolExecutor(THREADS, "passwords")

    @property
    def is_closed(self) -> bool:
        return self.methods not in ((), (NONE,))

    @property
    def challenge(self) -> str:
        schemes = [name for name in (BASIC, BEARER) if name in self.methods] or [BASIC]
        return ", ".join(f'{scheme.capitalize()} realm="{self._realm}"' for scheme in schemes)

    async def identify(self, request: HTTPConnection) -> Caller | None:
        """Return who calls; None for somebody who is not known, or may not use the service at all."""
        if not self.is_closed:
            return ANYBODY
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        caller = None
        if scheme.lower() == "basic" and BASIC in self.methods:
            caller = await self._by_password(text)
        elif scheme.lower() == "bearer" and self._tokens is not None:
            caller = self._by_token(text.strip())
        elif not scheme and self._rules is not None:
            caller = self._by_certificate(request.scope.get(CERTIFICATE_SCOPE))
        if caller is None or not (ANY_ROLE in self._needed or self._needed & caller.roles):
            return None
        is_listed = self.users is not None and self.users.find(caller.name) is not None
        return replace(caller, roles=ranked(caller.roles, self._default if is_listed else ""))

    async def _by_password(self, text: str) -> Caller | None:
        given, users = credentials(text), self.users
        if given is None or users is None:
            return None
        if users.is_proved(*given):
            user = users.find(given[0])
        else:
            user = await asyncio.get_running_loop().run_in_executor(self._threads, users.prove, *given)
        return None if user is None else Caller(given[0], user.roles, BASIC)

    def _by_token(self, token: str) -> Caller | None:
        assert self._tokens is not None
        found = self._tokens.find(token)
        if found is None:
            return None
        name, roles = found
        return Caller(name, frozenset(roles) | self._roles_of(name), BEARER)

    def _by_certificate(self, der: bytes | None) -> Caller | None:
        if der is None or self._rules is None:
            return None
        from cryptography import x509

        from moldau.tls import java_name

        name = self._rules.principal(java_name(x509.load_der_x509_certificate(der).subject))
        return None if not name else Caller(name, self._roles_of(name), CERTIFICATE)

    def _roles_of(self, name: str) -> frozenset[str]:
        """Return the roles of a name in the file; whoever is not in it has none."""
        user: User | None = self.users.find(name) if self.users else None
        return user.roles if user else frozenset()


def with_certificate(app: ASGIApp, transport: Any) -> ASGIApp:
    """Return an application whose requests have the certificate of a connection's client, if it has sent one."""
    connection = transport.get_extra_info("ssl_object")
    der = None if connection is None else connection.getpeercert(binary_form=True)
    if der is None:
        return app

    async def knowing(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, CERTIFICATE_SCOPE: der}, receive, send)

    return knowing


def credentials(text: str) -> tuple[str, str] | None:
    """Read name and password of Basic authentication."""
    try:
        name, colon, password = b64decode(text.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name, password) if colon else None


class _Tokens:
    """Checks bearer tokens, and finds roles in them."""

    def __init__(self, settings: ServiceSettings) -> None:
        from moldau.tokens.jwks import Keys
        from moldau.tokens.web_tokens import Rules, Validator

        def get(name: str) -> Any:
            return settings[f"authentication.bearer.{name}"]

        setting = "authentication.bearer.jwks.url"
        if not settings[setting]:
            raise SettingError(setting, None, "BEARER needs the keys that sign tokens")
        keys = Keys(setting, settings[setting])
        self._claim = get("roles.claim.name")
        self._validator = Validator(Rules.of(get), time.time, keys.read(), keys.ask)
        keys.keep_up(self._validator)

    def find(self, token: str) -> tuple[str, list[str]] | None:
        """Return subject and roles of a token; None if it does not count."""
        from moldau.sasl.bearer import InvalidToken

        try:
            claims: Mapping[str, Any] = self._validator.claims(token)
            name, _ = self._validator.rules.check(claims, time.time())
        except InvalidToken:
            return None
        roles = claims.get(self._claim, [])
        found = roles.split() if isinstance(roles, str) else roles
        return name, [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _mapping_rules(settings: ServiceSettings) -> Any:
    from moldau.tls import MappingRules

    if settings["ssl.client.authentication"] == NONE:
        reason = "CERTIFICATE needs ssl.client.authentication=REQUESTED or REQUIRED"
        raise SettingError("authentication.method", CERTIFICATE, reason)
    return MappingRules(settings["ssl.principal.mapping.rules"])

"""The client's settings: librdkafka's names, typed by the rows of the settings table (scope `client`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from moldau.settings import CLIENT, SettingError, client_inert_names, rows

PORT = 9092
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN_CALLBACK = "oauth_cb"  # confluent-kafka's name for it

_ADDRESS = re.compile(r"(?:\w+://)?(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]\s]+))(?::(\d{1,5}))?")


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Config:
    """Typed settings: `config["socket.timeout.ms"]`. `ignored` are names that mean something to librdkafka alone."""

    __slots__ = ("_values", "asks_controllers", "bootstrap", "ignored", "token")

    def __init__(self, given: Mapping[str, Any]) -> None:
        given = dict(given)
        self.token: Callable[[str], Any] | None = given.pop(TOKEN_CALLBACK, None)
        self.ignored = tuple(name for name in given if name in client_inert_names())
        texts = {name: _text(value) for name, value in given.items() if name not in self.ignored and value is not None}
        self._values = _resolve(texts)
        self.asks_controllers = bool(self["bootstrap.controllers"])
        if self.asks_controllers and self["bootstrap.servers"]:
            raise SettingError("bootstrap.controllers", None, "bootstrap.servers is set too: a client asks one of both")
        self.bootstrap = _addresses(self["bootstrap.controllers"] or self["bootstrap.servers"])
        self._check()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def seconds(self, name: str) -> float:
        """Return a setting in milliseconds as seconds."""
        return self._values[name] / 1000

    @property
    def uses_tls(self) -> bool:
        return self["security.protocol"].endswith("ssl")

    @property
    def uses_sasl(self) -> bool:
        return self["security.protocol"].startswith("sasl")

    def _check(self) -> None:
        if not self.uses_sasl:
            return
        mechanism = self["sasl.mechanism"]
        if not mechanism:
            wanted = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI"
            raise SettingError("sasl.mechanism", None, f"it must be set where security.protocol has SASL, to {wanted}")
        if mechanism == "OAUTHBEARER":
            is_oidc = self["sasl.oauthbearer.method"] == "oidc"
            if is_oidc:
                self._check_oidc()
            elif self.token is None and not self["enable.sasl.oauthbearer.unsecure.jwt"]:
                raise SettingError(TOKEN_CALLBACK, None, "OAUTHBEARER needs a function that gives tokens")
        elif mechanism == "GSSAPI":
            self._check_kerberos()
        elif not self["sasl.username"] or self["sasl.password"] is None:
            raise SettingError("sasl.username", None, f"{mechanism} needs sasl.username and sasl.password")

    def _check_kerberos(self) -> None:
        from moldau.sasl import kerberos

        try:
            kerberos.require()
        except ImportError as error:
            raise SettingError("sasl.mechanism", "GSSAPI", str(error).rstrip(".")) from None
        if self["sasl.kerberos.keytab"] and not self["sasl.kerberos.principal"]:
            raise SettingError("sasl.kerberos.principal", None, "sasl.kerberos.keytab needs it")

    def _check_oidc(self) -> None:
        for name in ("client.id", "client.secret", "token.endpoint.url"):
            if not self[f"sasl.oauthbearer.{name}"]:
                raise SettingError(f"sasl.oauthbearer.{name}", None, "sasl.oauthbearer.method=oidc needs it")
        url = urlsplit(self["sasl.oauthbearer.token.endpoint.url"])
        if url.scheme != "https" and url.hostname not in LOOPBACK:
            reason = "the secret would be sent as it is; it must be an address of https"
            raise SettingError("sasl.oauthbearer.token.endpoint.url", url.geturl(), reason)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolve(texts: dict[str, str]) -> dict[str, Any]:
    """Return the value of every row: given under its name or an alias, or the default."""
    table = rows(CLIENT)
    other = {alias: row.name for row in table.values() for alias in row.chain}
    values: dict[str, Any] = {}
    for name, text in texts.items():
        row = table.get(other.get(name, name))
        if row is None:
            raise SettingError(name, None, f"there is no such setting.{_nearest(name, [*table, *other])}")
        if row.name in texts and name in other:
            raise SettingError(name, None, f"it is another name for {row.name}, which is set too")
        if row.name == "acks":
            text = {"all": "-1"}.get(text, text)
        value = row.parse(text)
        values[row.name] = value.lower() if row.valid.endswith("i") and row.name != "sasl.mechanism" else value
    for row in table.values():
        if row.name not in values:
            values[row.name] = None if row.default is None else row.parse(row.default)
    values["sasl.mechanism"] = values["sasl.mechanism"].upper()
    return values


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _addresses(text: str) -> tuple[Address, ...]:
    found = tuple(_address(part.strip()) for part in text.split(",") if part.strip())
    if not found:
        raise SettingError("bootstrap.servers", None, "it must name at least one broker, as host:port")
    return found


def _address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    port = int(match[3] or PORT) if match else 0
    if not match or not 0 < port < 65536:
        raise SettingError("bootstrap.servers", text, "a broker is written host:port")
    return Address(match[1] or match[2], port)

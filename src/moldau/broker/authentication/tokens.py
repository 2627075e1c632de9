"""What checks the tokens of a listener, from the broker's settings."""

from __future__ import annotations

from typing import Any

from moldau import logs
from moldau.settings import SettingError, Settings
from moldau.tokens.jwks import LOOPBACK, Keys
from moldau.tokens.web_tokens import Rules, Validator

log = logs.get(__name__)

URL = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED = "moldau.sasl.oauthbearer.allowed.urls"
UNSECURED = "moldau.sasl.oauthbearer.unsecured"
TIMES = ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")


def make_validator(settings: Settings, listener: str, host: str, now_s: Any) -> Validator:
    """Make what checks the tokens of a listener; raises SettingError where nobody could be trusted."""
    rules = Rules.of(lambda name: settings.listener(listener, f"sasl.oauthbearer.{name}", "OAUTHBEARER"))
    url = settings.listener(listener, URL, "OAUTHBEARER")
    if url:
        if url not in settings[ALLOWED]:
            raise SettingError(URL, url, f"{ALLOWED} does not name it")
        keys = Keys(URL, url, *(settings[f"sasl.oauthbearer.jwks.endpoint.{name}"] / 1000 for name in TIMES))
        validator = Validator(rules, now_s, keys.read(), keys.ask)
        keys.keep_up(validator)
        return validator
    if not settings[UNSECURED]:
        raise SettingError(URL, None, "OAUTHBEARER needs the keys that sign tokens: without them anybody can be anyone")
    if host not in LOOPBACK:
        raise SettingError(UNSECURED, "true", f"the listener {listener} can be reached from outside ({host})")
    log.warning("tokens are accepted that nobody signed: anybody can be anyone", listener=listener)
    return Validator(rules, now_s)

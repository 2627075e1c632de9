"""The keys that sign tokens: read from a file or over HTTPS at the start, and again by a thread of its own.

Without keys nobody starts who needs them. When they cannot be read later, those before stay, and it is tried again
after a pause that grows. A token with an unknown key asks for them once more, at most every few seconds.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.settings import SettingError
from moldau.tokens.fetching import Bounds, FetchError, fetch
from moldau.tokens.web_tokens import Validator

log = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
TIMEOUT_S = 10.0  # for the whole of an answer
OK = 200
ASK_S = 10.0  # between two questions for an unknown key
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(slots=True)
class Keys:
    """Where the keys are, and when they are read again. `setting` is the one that names the address."""

    setting: str
    url: str
    every_s: float = 3600.0
    pause_s: float = 0.1
    longest_pause_s: float = 10.0
    whole_s: float = TIMEOUT_S
    _asked: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("https", "file") and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise SettingError(self.setting, self.url, "it must be an address of https, or of a file")

    def ask(self) -> None:
        self._asked.set()

    def read(self) -> Any:
        """Return the keys; raises SettingError."""
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            found = KeySet.import_key_set(_parsed(self._text()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, JoseError) as error:
            raise SettingError(self.setting, self.url, f"no keys can be read there: {error}") from None
        if not found.keys:
            raise SettingError(self.setting, self.url, "there is no key")
        return found

    def _text(self) -> bytes:
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as file:
                found = file.read(MOST_BYTES + 1)
            if len(found) > MOST_BYTES:
                raise ValueError(f"there are more than {MOST_BYTES} bytes")
            return found
        try:
            status, found = fetch("GET", self.url, Bounds(self.whole_s, MOST_BYTES))
        except FetchError as error:
            raise ValueError(str(error)) from None
        if status != OK:
            raise ValueError(f"the answer is {status}")
        return found

    def keep_up(self, validator: Validator) -> None:
        threading.Thread(target=self._keep_up, args=(validator,), name="jwks", daemon=True).start()

    def _keep_up(self, validator: Validator) -> None:
        pause_s, wait_s = self.pause_s, self.every_s
        while True:
            self._asked.wait(wait_s)
            try:
                validator.keys = self.read()
                pause_s, wait_s = self.pause_s, self.every_s
            except SettingError as error:
                log.warning("the keys of tokens stay as they are: %s", error)
                wait_s = pause_s = min(2 * pause_s, self.longest_pause_s)
            threading.Event().wait(ASK_S if self._asked.is_set() else 0)
            self._asked.clear()


def _parsed(data: bytes) -> Any:
    import json

    return json.loads(data)

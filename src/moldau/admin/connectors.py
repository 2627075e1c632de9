"""Connectors of a Connect cluster, over the REST interface of any of its workers."""

from __future__ import annotations

import difflib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from moldau.admin.mistakes import Mistake

URL = "http://127.0.0.1:8083"
TIMEOUT_S = 100.0
PREFIX = "connect."  # before the settings of connections to workers, where others stand beside them


@dataclass(frozen=True, slots=True)
class Login:
    """How a worker knows who asks: `name:password`, and the file with the authorities of its certificate."""

    user_info: str = field(default="", repr=False)
    ca: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Login:
        return cls(settings.get(f"{PREFIX}basic.auth.user.info", ""), settings.get(f"{PREFIX}ssl.ca.location", ""))

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Basic {b64encode(self.user_info.encode()).decode()}"} if self.user_info else {}


NOBODY = Login()


def ask(url: str, method: str, path: str, body: Any = None, login: Login = NOBODY) -> Any:
    """Return a worker's answer; Mistake if it refuses or cannot be reached."""
    from ssl import create_default_context
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **login.headers()}
    try:
        request = Request(url.rstrip("/") + path, data, headers, method=method)
        tls = [HTTPSHandler(context=create_default_context(cafile=login.ca))] if login.ca else []
        with build_opener(ProxyHandler({}), *tls).open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read() or b"null")
    except HTTPError as error:
        raise Mistake(_message(error.read()) or str(error)) from None
    except (URLError, TimeoutError, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise Mistake(f"No worker at {url}: {why}. `moldau up` or `moldau connect` runs one.") from None
    except ValueError:
        raise Mistake(f"What answers at {url} is not a worker of Connect.") from None


def _message(body: bytes) -> str:
    try:
        return json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return ""


def path_of(name: str, rest: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{rest}"


def answered(found: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a validation that say something of a value. As in Connect, those have none of settings that a
    Java connector defines but does not look at.
    """
    return [row for row in found["configs"] if row["value"] is not None]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the lines that change between two configs, with + and -."""
    one, other = ([f"{key}={value}" for key, value in sorted(config.items())] for config in (before, after))
    return [line for line in difflib.ndiff(one, other) if line[0] in "+-"]


def states_of(status: Mapping[str, Any]) -> str:
    """Return how many tasks are in which state."""
    states = [task["state"] for task in status.get("tasks", ())]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))

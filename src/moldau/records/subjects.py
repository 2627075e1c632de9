"""A schema registry over HTTP: its answers, and its refusals as sentences."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from moldau.admin.connection import REGISTRY_PREFIX, Connection
from moldau.admin.mistakes import Mistake

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S = 60.0


def ask(connection: Connection, method: str, path: str, body: Any = None, user: str | None = None) -> Any:
    """Return the registry's answer; Mistake if it refuses or cannot be reached."""
    url = connection.registry_url
    name, _, password = (user or connection.settings.get(f"{REGISTRY_PREFIX}basic.auth.user.info") or "").partition(":")
    headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
    content = None if body is None else json.dumps(body).encode()
    try:
        answer = httpx.request(
            method,
            url.rstrip("/") + path,
            content=content,
            headers=headers,
            auth=(name, password) if name else None,
            timeout=TIMEOUT_S,
            verify=connection.settings.get(f"{REGISTRY_PREFIX}ssl.ca.location", True),
        )
        found = answer.json() if answer.content else None
    except httpx.InvalidURL:
        raise Mistake(f"{url!r} is no URL; write --registry http://HOST:PORT.") from None
    except httpx.HTTPError as error:
        raise Mistake(
            f"No registry at {url}: {error}. Start one with `moldau registry`, or name it with --registry."
        ) from None
    except OSError as error:
        raise Mistake(f"No registry at {url}: {error.strerror}. Is schema.registry.ssl.ca.location right?") from None
    except ValueError:
        raise Mistake(f"What answers at {url} is no schema registry.") from None
    if not answer.is_success:
        what = found if isinstance(found, dict) else {}
        raise Mistake(f"{what.get('message', answer.reason_phrase)} ({what.get('error_code', answer.status_code)})")
    return found


def quoted(name: str) -> str:
    """Quote a subject for a path."""
    return quote(name, safe="").replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def pretty(schema: str) -> str:
    """Indent JSON; return anything else as it is."""
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return schema.rstrip("\n")

"""The audit log of a service: who was refused, and who changed something, as lines with fields.

Lines go to the logger `moldau.http.audit`; with `moldau.audit.file` they are JSON in a file of their own, which is
rotated. A host that floods it is cut short, and a later line says how many were left out. Headers and bodies, and so
passwords and tokens, are never in it.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import HTTPConnection

from moldau import logs
from moldau.http.callers import Caller

NAME = "moldau.http.audit"
LONGEST_PATH = 500

log = logs.get(NAME)
_quota = logs.Quota()


def refused(request: HTTPConnection, caller: Caller | None, why: str) -> None:
    """Report a request that was not served because of who sent it."""
    host = _host(request)
    if (kept := _quota.admit(host)) is not None:
        log.warning("denied", **_who(request, caller), reason=why, **({"kept_back": kept} if kept else {}))


def changed(request: HTTPConnection, caller: Caller, status: int) -> None:
    """Report a request that changed something, or was to change it."""
    log.info("asked for a change", **_who(request, caller), status=status)


def _who(request: HTTPConnection, caller: Caller | None) -> dict[str, Any]:
    path = request.scope["raw_path"].decode("latin-1")[:LONGEST_PATH]
    known = {"principal": f"User:{caller.name}", "how": caller.how} if caller else {"principal": "unknown"}
    return {**known, "host": _host(request), "request": f"{request.scope.get('method', 'GET')} {path}"}


def _host(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""

"""Routes as rows, matched on the path as it was sent: a name with %2F in it is one segment, and `..` is a name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from moldau.http.callers import EDITOR, RANKS, VIEWER
from moldau.http.errors import HttpError

Handler = Callable[[Request], Awaitable[Response]]


class Route(NamedTuple):
    """One endpoint. `{name}` in the path stands for a segment, which the handler finds in `request.path_params`."""

    method: str
    path: str
    handler: Handler
    role: str = ""  # the least that a caller must be; without one, what BY_METHOD says

    @property
    def needs(self) -> str:
        return self.role or BY_METHOD.get(self.method, EDITOR)


BY_METHOD = {"GET": VIEWER, "OPTIONS": VIEWER}


class Found(NamedTuple):
    """The route of a request: its handler, the names in the path, and the role that it needs."""

    handler: Handler
    names: Mapping[str, str]
    role: str


class Routes:
    """All endpoints of a service. A literal segment wins over a name; a slash at the end does not count."""

    __slots__ = ("_tree",)

    def __init__(self, rows: Iterable[Route]) -> None:
        self._tree: dict[str, dict] = {}
        for row in rows:
            node = self._tree
            for segment in _segments(row.path):
                node = node.setdefault("{}" if segment[0] == "{" else segment, {})
            names = [segment[1:-1] for segment in _segments(row.path) if segment[0] == "{"]
            assert row.method not in node.get("", {}), f"{row.method} {row.path} is there twice"
            assert row.needs in RANKS, f"{row.method} {row.path} needs {row.role}, which nobody is"
            node.setdefault("", {})[row.method] = (row.handler, names, row.needs)

    def find(self, method: str, raw_path: bytes) -> Found:
        """Return the route of a request; HttpError 404, 405 or 400."""
        methods, values = self._descend(self._tree, _segments(raw_path.decode("latin-1")))
        if not methods:
            raise HttpError(404)
        found = methods.get("GET" if method == "HEAD" else method)
        if found is None:
            raise HttpError(405, headers={"Allow": ", ".join(sorted(methods))})
        handler, names, role = found
        return Found(handler, dict(zip(names, map(decoded, values), strict=True)), role)

    def _descend(self, node: dict, segments: list[str]) -> tuple[dict, list[str]]:
        if not segments:
            return node.get("", {}), []
        first, rest = segments[0], segments[1:]
        for branch, taken in ((unquote(first), []), ("{}", [first])):
            if branch in node and branch != "" and (branch == "{}") == bool(taken):
                methods, values = self._descend(node[branch], rest)
                if methods:
                    return methods, taken + values
        return {}, []


def decoded(segment: str) -> str:
    """Decode a segment of a path."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise HttpError(400, "The path is not valid UTF-8.") from None


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]

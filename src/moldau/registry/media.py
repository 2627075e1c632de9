"""Media types of the registry: which it reads, and which of its own a client wants."""

from __future__ import annotations

from moldau.http import HttpError

V1 = "application/vnd.schemaregistry.v1+json"
JSON = "application/json"
OURS = (V1, "application/vnd.schemaregistry+json", JSON)
READ = (*OURS, "application/octet-stream")  # what a client sends that says nothing


def check_content_type(header: str | None) -> None:
    """415 for a body of another kind; none at all is taken for ours."""
    if header and header.partition(";")[0].strip().lower() not in READ:
        raise HttpError(415)


def negotiated(accept: str | None) -> str:
    """The type of the answer; 406 where a client takes none of ours."""
    best, chosen = 0.0, None
    for part in (accept or "*/*").lower().split(","):
        kind, *params = (piece.strip() for piece in part.split(";"))
        quality = _quality(params)
        found = next((ours for ours in OURS if kind in (ours, "application/*", "*") or kind.startswith("*/")), None)
        if found and quality > best:
            best, chosen = quality, found
    if chosen is None:
        raise HttpError(406)
    return chosen


def _quality(params: list[str]) -> float:
    for param in params:
        if param.startswith("q="):
            try:
                return float(param[2:])
            except ValueError:
                return 0.0
    return 1.0

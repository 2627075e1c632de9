"""Media types: what an endpoint takes and gives, and which of them a request means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.http.errors import HttpError


class Types(NamedTuple):
    """Types in order of preference. `general` are those that stand for the first; without `refuses`, so do all others
    that a request sends or accepts. `answers` has the type to answer with, instead of the first, for types of bodies.
    """

    names: tuple[str, ...]
    general: tuple[str, ...] = ()
    answers: Mapping[str, str] | None = None
    refuses: bool = True

    def content(self, header: str | None) -> str:
        """Return the type of a body; without a header, the first."""
        given = _bare(header)
        if not given or given in self.general:
            return self.names[0]
        if given in self.names:
            return given
        if self.refuses:
            raise HttpError(415)
        return self.names[0]

    def accepted(self, header: str | None, sent: str | None = None) -> str:
        """Return the best type that a request accepts; `sent` is the type of its body."""
        first = (self.answers or {}).get(_bare(sent), self.names[0])
        wanted = sorted(_ranges(header), key=lambda range: -range[1])
        for name, weight in wanted:
            if weight > 0:
                if name in ("*", "application/*") or name.startswith("*/") or name in self.general:
                    return first
                if name in self.names:
                    return name
        if wanted and self.refuses:
            raise HttpError(406)
        return first


def _bare(header: str | None) -> str:
    return (header or "").partition(";")[0].strip().lower()


def _ranges(header: str | None) -> list[tuple[str, float]]:
    ranges = []
    for part in (header or "").lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        if name:
            ranges.append((name, float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0))
    return ranges


JSON = Types(("application/json",))
ANY = Types(JSON.names, refuses=False)

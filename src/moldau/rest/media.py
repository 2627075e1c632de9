"""Media types: what an endpoint takes and gives, and which of it a request means."""

from __future__ import annotations

from typing import NamedTuple

from moldau.http import HttpError

V2_JSON = "application/vnd.kafka.v2+json"
EMBEDDED = ("binary", "json", "avro", "jsonschema", "protobuf")
V2_FORMAT = {f"application/vnd.kafka.{name}.v2+json": name for name in EMBEDDED}


class Types(NamedTuple):
    """Types in order of preference; `general` are those that stand for the first."""

    names: tuple[str, ...]
    general: tuple[str, ...] = ()

    def content(self, header: str | None) -> str:
        """The type of a body; without a header, the first."""
        given = (header or "").partition(";")[0].strip().lower()
        if not given or given in self.general:
            return self.names[0]
        if given not in self.names:
            raise HttpError(415)
        return given

    def accepted(self, header: str | None) -> str:
        """The best type that a request accepts."""
        wanted = sorted(_ranges(header), key=lambda range: -range[1])
        for name, weight in wanted:
            if weight > 0:
                if name in ("*", "application/*") or name.startswith("*/") or name in self.general:
                    return self.names[0]
                if name in self.names:
                    return name
        if wanted:
            raise HttpError(406)
        return self.names[0]


def _ranges(header: str | None) -> list[tuple[str, float]]:
    found = []
    for part in (header or "").lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        if name:
            found.append((name, float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0))
    return found


JSON = Types(("application/json",))
V2 = Types((V2_JSON, *V2_FORMAT), ("application/vnd.kafka+json", "application/json"))
V2_BODY = Types((V2_JSON, *V2_FORMAT))
V2_RECORDS = Types(tuple(V2_FORMAT))  # what is produced
V2_GENERAL = (V2_JSON, "application/vnd.kafka+json", "application/json")
V2_CONSUMED = Types(tuple(V2_FORMAT), V2_GENERAL)

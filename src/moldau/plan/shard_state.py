"""The book of a shard: what it keeps from batch to batch besides its stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.operators.context import UNKNOWN_TIME, TopologyError
from moldau.operators.stores.pages import Pages

BOOK = ""  # the name of a shard's own pages: no store has it
FORMAT = 1
GOING_ON = 0  # the page of the book; those after it are blobs that are held back

PagesOf = Callable[[str], Pages]


@dataclass(slots=True)
class Book:
    """The state of a shard besides its stores."""

    stream_time: int = UNKNOWN_TIME
    system_time: int = 0
    sequence: int = 0  # of the next blob
    times: dict[str, int] = field(default_factory=dict[str, int])  # topic -> the newest time that was taken
    offsets: dict[str, int] = field(default_factory=dict[str, int])  # internal topic -> the next offset
    punctuators: list[list[list[int]]] = field(default_factory=list[list[list[int]]])  # [at, cancelled]; two kinds
    held: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])  # topic, page of a blob
    stores: list[str] = field(default_factory=list[str])  # that have pages
    version: str = ""  # of the stores' pages
    failed: int = 0  # the last attempt in which the shard has failed

    def to_bytes(self) -> bytes:
        return json.dumps([FORMAT, *(getattr(self, name) for name in self.__slots__)]).encode()

    @classmethod
    def of_bytes(cls, data: bytes | None) -> Book:
        if data is None:
            return cls()
        version, *rest = json.loads(data)
        if version != FORMAT:
            raise TopologyError(f"the state has the format {version}, and this version reads {FORMAT}")
        return cls(*rest)

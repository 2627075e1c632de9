"""A case (a topology, settings, steps of input) and an answer to it: what each step made, what is left at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Input:
    """A record that is put into a topic."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()

    def __str__(self) -> str:
        headers = f" {shown_headers(self.headers)}" if self.headers else ""
        return f"{self.topic:5} {shown(self.key):>4} = {shown(self.value):8} @ {self.timestamp}{headers}"


@dataclass(frozen=True, slots=True)
class Advance:
    """Wall-clock time that passes."""

    milliseconds: int

    def __str__(self) -> str:
        return f"wall clock + {self.milliseconds}"


Step = Input | Advance


@dataclass(frozen=True, slots=True)
class Case:
    topology: str
    steps: Sequence[Step]
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        steps = "".join(f"\n  {number:2}. {step}" for number, step in enumerate(self.steps, 1))
        return f"{self.topology} {dict(self.settings) or ''}{steps}"


@dataclass(frozen=True, slots=True)
class Made:
    """A record that came out of a topology: in a sink's topic, a repartition topic or a changelog."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()

    def __str__(self) -> str:
        headers = f" {shown_headers(self.headers)}" if self.headers else ""
        return f"{self.topic}  {shown(self.key)} = {shown(self.value)} @ {self.timestamp}{headers}"


Row = tuple[bytes | int | None, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    describe: str = ""
    steps: Sequence[Sequence[Made]] = ()
    stores: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    seen: Sequence[str] = ()
    error: str = ""


def shown(data: bytes | None) -> str:
    """Text where it is text; else as bytes."""
    if data is None:
        return "null"
    text = data.decode("latin-1")
    return f'"{text}"' if text.isascii() and text.isprintable() else str(data)


def shown_headers(headers: Headers) -> str:
    return "{" + ", ".join(f"{name}: {shown(value)}" for name, value in headers) + "}"

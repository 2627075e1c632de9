"""Where reading begins and ends: beginning, end, an offset, -N from the end, s@TIME and e@TIME, as kcat writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.admin import TopicPartition, offsets, resets
from moldau.admin.mistakes import misused
from moldau.client import Client

BEGINNING, END, STORED = "beginning", "end", "stored"
WORDS = {"beginning": BEGINNING, "earliest": BEGINNING, "start": BEGINNING, "end": END, "latest": END, "stored": STORED}


@dataclass(frozen=True, slots=True)
class Span:
    """A requested range: a word, an offset, so many from the end, or times in ms."""

    word: str | None = None
    offset: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None


def parse(given: Iterable[str]) -> Span:
    """Parse the values of `-o`: at most one start and one end."""
    start: dict[str, str | int] = {}
    until: int | None = None
    for text in given:
        if text.startswith("e@"):
            until = _time(text[2:])
            continue
        if start:
            raise misused(f"-o says twice where to begin; {text!r} is one too many.")
        start = _start(text)
    return Span(**start, until_ms=until)  # type: ignore[arg-type]


def _start(text: str) -> dict[str, str | int]:
    if text.lower() in WORDS:
        return {"word": WORDS[text.lower()]}
    if re.fullmatch(r"-\d{1,18}", text):
        return {"last": int(text[1:])}
    if re.fullmatch(r"\d{1,18}", text):
        return {"offset": int(text)}
    if text.startswith("s@"):
        return {"since_ms": _time(text[2:])}
    raise misused(f"-o {text!r} is no position: write beginning, end, an offset, -N, s@TIME or e@TIME.")


def _time(text: str) -> int:
    try:
        return resets.moment_ms(text)
    except resets.ResetError as error:
        raise misused(str(error)) from None


def starts(client: Client, span: Span, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the first offset to read in each partition, always within the partition."""
    bounds = offsets.ends(client, places)
    if span.since_ms is not None:
        found = offsets.one_time(client, places, span.since_ms)
        return {place: found[place] if found[place] >= 0 else bounds[place][1] for place in places}
    if span.word == END:
        return {place: end for place, (_, end) in bounds.items()}
    if span.last is not None:
        return {place: max(first, end - span.last) for place, (first, end) in bounds.items()}
    if span.offset is not None:
        return {place: min(max(span.offset, first), end) for place, (first, end) in bounds.items()}
    return {place: first for place, (first, _) in bounds.items()}


def stops(client: Client, span: Span, places: list[TopicPartition]) -> dict[TopicPartition, int] | None:
    """Return the first offset not to read in each partition, if an end time was given."""
    if span.until_ms is None:
        return None
    found = offsets.one_time(client, places, span.until_ms)
    ends = offsets.one_time(client, places, offsets.LATEST)
    return {place: found[place] if found[place] >= 0 else ends[place] for place in places}

"""A difference between two schemas of JSON or Protobuf, and how it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

PAIRS = 100_000  # of parts that are compared before schemas count as too large
MOST = 1_000  # differences that are kept of one pair of parts


class TooLarge(Exception):
    """Two schemas have more parts to compare with each other than is sensible."""


@dataclass(frozen=True, slots=True)
class Difference:
    type: str
    path: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return "#/" + "/".join(self.path)

    def __str__(self) -> str:
        return f"{self.type} {self.place}"


def shortened(found: list[Difference], allowed: Collection[str]) -> list[Difference]:
    """Keep at most MOST differences: parts that are used in many places multiply what differs in them. What is not
    allowed goes first, so that it is never left out."""
    if len(found) <= MOST:
        return found
    return sorted(dict.fromkeys(found), key=lambda difference: difference.type in allowed)[:MOST]


def below(part: str, differences: Iterable[Difference]) -> list[Difference]:
    """Return the same differences, seen from one step further up."""
    return [Difference(difference.type, (part, *difference.path)) for difference in differences]


def messages_of(
    differences: Iterable[Difference], allowed: Collection[str], sentences: Mapping[str, str], reader: str, writer: str
) -> list[str]:
    """Return a message for each difference that is not allowed. `sentences` has one for each type, or for the end of
    its name."""
    found = dict.fromkeys(difference for difference in differences if difference.type not in allowed)
    return [message(difference, sentences, reader, writer) for difference in found]


def message(difference: Difference, sentences: Mapping[str, str], reader: str, writer: str) -> str:
    sentence = next(text for end, text in sentences.items() if difference.type.endswith(end))
    description = sentence.format(path=difference.place, reader=reader, writer=writer)
    return f'{{errorType:"{difference.type}", description:"{description}"}}'

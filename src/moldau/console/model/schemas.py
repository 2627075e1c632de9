"""Schemas as pages show them: two versions side by side, and what a subject is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from moldau.console.model.problems import Refused
from moldau.records.subjects import pretty

LARGEST = 1 << 20  # characters of a schema that is typed
MOST_LINES = 2000  # that are compared
KINDS = ("AVRO", "JSON", "PROTOBUF")
LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
SAME, GONE, NEW, CHANGED = "same", "gone", "new", "changed"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject."""

    number: int
    id: int
    kind: str
    text: str
    references: tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Version:
        references = tuple(one["subject"] for one in answer.get("references") or ())
        kind = answer.get("schemaType") or "AVRO"
        return cls(answer["version"], answer["id"], kind, pretty(answer["schema"]), references)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a comparison: left and right, and what it is."""

    left: str
    right: str
    what: str


def compared(old: str, new: str) -> list[Line]:
    """Two texts side by side, line by line."""
    return list(_lines(old.splitlines()[:MOST_LINES], new.splitlines()[:MOST_LINES]))


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (Line(text, text, SAME) for text in old[i:j])
            continue
        left, right = list(old[i:j]), list(new[k:m])
        for number in range(max(len(left), len(right))):
            one = left[number] if number < len(left) else None
            other = right[number] if number < len(right) else None
            yield Line(one or "", other or "", GONE if other is None else NEW if one is None else CHANGED)


def topic_of(subject: str) -> tuple[str, str] | None:
    """The topic and field whose schemas a subject has by TopicNameStrategy; None if its name does not say."""
    for field in ("value", "key"):
        if subject.endswith(f"-{field}") and not subject.startswith(":"):
            return subject.removesuffix(f"-{field}"), field
    return None


def context_of(subject: str) -> str:
    """The context in front of a subject's name, `:.dev:` say; ids are of their context."""
    return subject[: subject.index(":", 1) + 1] if subject.startswith(":.") and ":" in subject[1:] else ""


def candidate(kind: str, text: str) -> dict[str, Any]:
    """What a form says, for the registry; Refused where it says nothing, or too much."""
    if not text.strip():
        raise Refused("There is no schema yet: write or paste one.")
    if len(text) > LARGEST:
        raise Refused(f"A schema of more than {LARGEST} characters is not taken here.")
    return {"schema": text, "schemaType": kind if kind in KINDS else KINDS[0]}

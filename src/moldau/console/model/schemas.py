"""Schemas on pages: two versions side by side, and what a subject describes."""

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
    """A line of a comparison: left, right, and how they differ."""

    left: str
    right: str
    what: str


def compare(old: str, new: str) -> list[Line]:
    """Compare two texts line by line."""
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
    """Return the topic and field that a subject describes by TopicNameStrategy; None if its name does not say."""
    topic, dash, field = subject.rpartition("-")
    return (topic, field) if dash and field in ("value", "key") and not subject.startswith(":") else None


def context_of(subject: str) -> str:
    """Return the context in front of a subject's name, such as `:.dev:`; an id belongs to its context."""
    return subject[: subject.index(":", 1) + 1] if subject.startswith(":.") and ":" in subject[1:] else ""


def candidate(kind: str, text: str) -> dict[str, Any]:
    """Return the request for a schema in a form; Refused if it is empty or too large."""
    if not text.strip():
        raise Refused("Write or paste a schema first.")
    if len(text) > LARGEST:
        raise Refused(f"A schema may have at most {LARGEST} characters here.")
    return {"schema": text, "schemaType": kind if kind in KINDS else KINDS[0]}

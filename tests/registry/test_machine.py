"""The registry beside a naive model of it: lists that are walked, without an index.

Every change goes through records as they stand in the topic; a restart reads them again, also after the cleaner has
left only the last record of each key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.http import HttpError
from moldau.registry import commands, names
from moldau.registry.commands import LATEST, Candidate, Change, Registry
from moldau.registry.parsing import Schemas
from moldau.registry.records import decode, encode
from moldau.registry.store import Store
from moldau.serdes.schemas import Reference
from tests.registry.running import record

TEXTS = tuple(
    json.dumps(schema, separators=(",", ":"))
    for schema in (record("x:int"), record("x:int", "y:string", y=""), record("x:string"), record("x:long"))
)
# Which of them reads what which has written: reader, writer.
READS = {(0, 0), (1, 1), (2, 2), (3, 3), (1, 0), (0, 1), (3, 0), (3, 1)}
OUTER = json.dumps(record("p:Order", name="Outer"), separators=(",", ":"))
SUBJECTS = ("a", "b", ":.c:a")
OUTERS = ("o", ":.c:o")
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FULL_TRANSITIVE")
PLACES = (*SUBJECTS, *OUTERS, ":.c:", ":.__GLOBAL:", None)


@dataclass(frozen=True)
class Known:
    """A version as the model has it. `content` is the number of a text, and what it refers to."""

    subject: str
    version: int
    id: int
    content: tuple[int, tuple[str, int] | None]
    deleted: bool = False


@dataclass
class Model:
    versions: list[Known] = field(default_factory=list)
    levels: dict[str | None, str] = field(default_factory=dict)
    modes: dict[str | None, str] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)
    highest: dict[str, int] = field(default_factory=dict)

    def of(self, subject: str, deleted: bool = True) -> list[Known]:
        found = [one for one in self.versions if one.subject == subject and (deleted or not one.deleted)]
        return sorted(found, key=lambda one: one.version)

    def scoped(self, table: dict[str | None, str], place: str | None, default: str) -> str:
        """What holds at a place: its own, its context's, everybody's."""
        context = names.prefix_of(names.context_of(place)) or None if place is not None else None
        return next((table[one] for one in (place, context, ":.__GLOBAL:") if one in table), default)

    def check_writable(self, subject: str | None) -> None:
        if self.scoped(self.modes, subject, "READWRITE") == "READONLY":
            raise Refusal(42205)

    def referrers(self, target: Known, deleted: bool) -> list[Known]:
        place = (target.subject, target.version)
        return [one for one in self.versions if one.content[1] == place and (deleted or not one.deleted)]

    def text(self, content: tuple[int, tuple[str, int] | None]) -> int:
        """The number of the text that decides what is compatible: an outer one is as its part."""
        number, place = content
        if place is None:
            return number
        return next(one.content[0] for one in self.versions if (one.subject, one.version) == place)

    def register(self, subject: str, content: tuple[int, tuple[str, int] | None]) -> tuple[int, int]:
        places = {(one.subject, one.version): one.deleted for one in self.versions}
        live, context = self.of(subject, deleted=False), names.context_of(subject)
        if live and content[1] is not None and content[1] not in places:
            raise Refusal(42201)
        for one in reversed(live):
            if one.content == content:
                return one.version, one.id
        self.check_writable(subject)
        if content[1] is not None and places.get(content[1], True):
            raise Refusal(42201)
        if not self.is_compatible(subject, content, live):
            raise Refusal(40901)
        same = [one.id for one in self.versions if names.context_of(one.subject) == context and one.content == content]
        id = same[0] if same else self.highest.get(context, 0) + 1
        number = max((one.version for one in self.of(subject)), default=0) + 1
        gone = [one for one in self.of(subject) if one.deleted and one.id == id and not self.referrers(one, True)]
        self.versions = [one for one in self.versions if one not in gone] + [Known(subject, number, id, content)]
        self.highest[context] = max(id, self.highest.get(context, 0))
        self.contexts |= {context} - {names.DEFAULT}
        return number, id

    def is_compatible(self, subject: str, content: Any, live: list[Known]) -> bool:
        level = self.scoped(self.levels, subject, "BACKWARD")
        new = self.text(content)
        olds = [self.text(one.content) for one in (live if level.endswith("TRANSITIVE") else live[-1:])]
        if level.startswith(("BACKWARD", "FULL")) and any((new, old) not in READS for old in olds):
            return False
        return not (level.startswith(("FORWARD", "FULL")) and any((old, new) not in READS for old in olds))

    def delete_version(self, subject: str, number: int, permanent: bool) -> int:
        every = {one.version: one for one in self.of(subject)}
        if number in every and every[number].deleted and not permanent:
            raise Refusal(40406)
        if number not in every:
            raise Refusal(40402 if every else 40401)
        self.check_writable(subject)
        if self.referrers(every[number], permanent):
            raise Refusal(42206)
        if not permanent:
            self.versions = [replace(one, deleted=True) if one is every[number] else one for one in self.versions]
        elif not every[number].deleted:
            raise Refusal(40407)
        else:
            self.versions = [one for one in self.versions if one is not every[number]]
            self.forget(subject)
        return number

    def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        every, live = self.of(subject), self.of(subject, deleted=False)
        if not every:
            raise Refusal(40401)
        if not permanent and not live:
            raise Refusal(40404)
        self.check_writable(subject)
        doomed = every if permanent else live
        if any(one.subject != subject for target in doomed for one in self.referrers(target, permanent)):
            raise Refusal(42206)
        if permanent and live:
            raise Refusal(40405)
        if permanent:
            self.versions = [one for one in self.versions if one.subject != subject]
            self.forget(subject)
        else:
            self.versions = [replace(one, deleted=True) if one.subject == subject else one for one in self.versions]
        return [one.version for one in doomed]

    def forget(self, subject: str) -> None:
        if not self.of(subject):
            self.levels.pop(subject, None)
            self.modes.pop(subject, None)

    def set(self, table: dict[str | None, str], place: str | None, value: str) -> str:
        if table is self.levels:
            self.check_writable(place)
        table[place] = value
        return value

    def unset(self, table: dict[str | None, str], place: str | None, default: str) -> str:
        if place not in table and place is not None:
            raise Refusal(40401)
        if table is self.levels:
            self.check_writable(place)
        return table.pop(place, default)

    def delete_context(self, context: str) -> None:
        if any(names.context_of(one.subject) == context for one in self.versions):
            raise Refusal(42211)
        self.contexts.discard(context)


class Refusal(Exception):
    """By its code."""


class Machine(RuleBasedStateMachine):
    """The same is asked of both."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.topic: list[tuple[bytes, bytes | None]] = []
        self.start(self.topic)

    def start(self, topic: list[tuple[bytes, bytes | None]]) -> None:
        store = Store()
        self.registry = Registry(store, Schemas(store, 100))
        for key, value in topic:
            store.replay(decode(key), None if value is None else decode(value))

    def compare(self, ours: Any, theirs: Any) -> None:
        """Both answer the same, or refuse with the same code."""
        try:
            expected: Any = theirs()
        except Refusal as refusal:
            with pytest.raises(HttpError) as refused:
                ours()
            assert refused.value.code == refusal.args[0]
            return
        change: Change = ours()
        for one in change.records:
            key, value = encode(one.key), None if one.value is None else encode(one.value)
            self.topic.append((key, value))
            self.registry.store.replay(decode(key), None if value is None else decode(value))
        found = change.answer
        if isinstance(expected, tuple):
            found = (found.version, found.id)
        elif isinstance(found, dict):
            found = found["compatibilityLevel"]
        assert found == expected

    @rule(subject=st.sampled_from(SUBJECTS), number=st.sampled_from(range(len(TEXTS))))
    def register(self, subject: str, number: int) -> None:
        given = Candidate(TEXTS[number])
        self.compare(
            lambda: commands.register(self.registry, subject, given, normalize=False),
            lambda: self.model.register(subject, (number, None)),
        )

    @rule(subject=st.sampled_from(OUTERS), part=st.sampled_from(("a", "b")), version=st.integers(1, 3))
    def register_what_refers(self, subject: str, part: str, version: int) -> None:
        """A name without a context is in that of whoever refers to it."""
        place = (names.within(subject, part), version)
        given = Candidate(OUTER, references=(Reference("Order", part, version),))
        self.compare(
            lambda: commands.register(self.registry, subject, given, normalize=False),
            lambda: self.model.register(subject, (-1, place)),
        )

    @rule(subject=st.sampled_from(SUBJECTS + OUTERS), version=st.integers(1, 3), permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        self.compare(
            lambda: commands.delete_version(self.registry, subject, version, permanent=permanent),
            lambda: self.model.delete_version(subject, version, permanent),
        )

    @rule(subject=st.sampled_from(SUBJECTS + OUTERS), permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        self.compare(
            lambda: commands.delete_subject(self.registry, subject, permanent=permanent),
            lambda: self.model.delete_subject(subject, permanent),
        )

    @rule(place=st.sampled_from(PLACES), level=st.sampled_from(LEVELS))
    def set_level(self, place: str | None, level: str) -> None:
        self.compare(
            lambda: commands.set_config(self.registry, place, {"compatibilityLevel": level}),
            lambda: self.model.set(self.model.levels, place, level),
        )

    @rule(place=st.sampled_from(PLACES))
    def delete_level(self, place: str | None) -> None:
        self.compare(
            lambda: commands.delete_config(self.registry, place),
            lambda: self.model.unset(self.model.levels, place, "BACKWARD"),
        )

    @rule(place=st.sampled_from(PLACES), mode=st.sampled_from(("READWRITE", "READWRITE", "READONLY")))
    def set_mode(self, place: str | None, mode: str) -> None:
        self.compare(
            lambda: commands.set_mode(self.registry, place, mode, force=False),
            lambda: self.model.set(self.model.modes, place, mode),
        )

    @rule(place=st.sampled_from(PLACES))
    def delete_mode(self, place: str | None) -> None:
        self.compare(
            lambda: commands.delete_mode(self.registry, place, recursive=False),
            lambda: self.model.unset(self.model.modes, place, "READWRITE"),
        )

    @rule()
    def delete_context(self) -> None:
        self.compare(lambda: commands.delete_context(self.registry, ":.c:"), lambda: self.model.delete_context(".c"))

    @precondition(lambda self: self.topic)
    @rule()
    def restart(self) -> None:
        self.start(self.topic)

    @precondition(lambda self: self.topic)
    @rule(tombstones=st.booleans())
    def restart_on_a_clean_topic(self, tombstones: bool) -> None:
        """What was deleted for good is forgotten, the highest id too: its number may be given again."""
        last = {key: at for at, (key, _) in enumerate(self.topic)}
        kept = [row for at, row in enumerate(self.topic) if last[row[0]] == at and (tombstones or row[1] is not None)]
        self.topic = kept
        self.start(kept)
        self.model.highest = {}
        for one in self.model.versions:
            context = names.context_of(one.subject)
            self.model.highest[context] = max(one.id, self.model.highest.get(context, 0))

    @invariant()
    def all_is_the_same(self) -> None:
        store, model = self.registry.store, self.model
        for subject in SUBJECTS + OUTERS:
            expected = [(one.version, one.id, one.deleted) for one in model.of(subject)]
            assert [(one.version, one.id, one.deleted) for one in store.versions(subject)] == expected
            latest = store.version(subject, LATEST, deleted=False)
            assert (latest.version if latest else None) == next(
                (one.version for one in reversed(model.of(subject, deleted=False))), None
            )
        assert store.subjects() == sorted({one.subject for one in model.versions if not one.deleted})
        assert store.subjects(deleted=True) == sorted({one.subject for one in model.versions})
        assert store.contexts() == [".", *sorted(model.contexts)]
        assert store.modes == model.modes
        assert {place: config["compatibilityLevel"] for place, config in store.configs.items()} == model.levels
        self.indexes_are_the_same()

    def indexes_are_the_same(self) -> None:
        store, model = self.registry.store, self.model
        for one in model.versions:
            context, place = names.context_of(one.subject), (one.subject, one.version)
            with_id = [
                other for other in model.versions if (names.context_of(other.subject), other.id) == (context, one.id)
            ]
            assert [(other.subject, other.version) for other in store.with_id(context, one.id)] == sorted(
                (other.subject, other.version) for other in with_id
            )
            found = store.version(*place)
            assert found is not None
            assert store.id_of(context, found) == one.id
            assert found == store.with_md5(context, found.md5) or len(with_id) > 1
            assert [(other.subject, other.version) for other in store.referrers(*place)] == sorted(
                (other.subject, other.version) for other in model.referrers(one, True)
            )


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

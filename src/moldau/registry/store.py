"""The state of a registry: what the records of `_schemas` say. It changes by `replay` alone.

The thread that reads the topic replays; others read meanwhile. So a reader copies what it walks over, and a version
stands in its subject only after the indexes know it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.registry import names
from moldau.registry.records import (
    CLEAR_SUBJECT,
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    MODE,
    SCHEMA,
    Json,
    Version,
    version_of,
)
from moldau.serdes.schemas import TYPES

LATEST = -1  # in place of the number of a version
Same = tuple[str, str, bytes]  # context, type, digest


class Store:
    """Subjects, settings, modes and contexts, with indexes by id, by content and by reference."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: the topic was made again, and is read from its start."""
        self.configs: dict[str | None, Json] = {}
        self.aliased: set[str | None] = set()  # subjects that stand for another
        self.modes: dict[str | None, str] = {}
        self._contexts: set[str] = set()
        self._subjects: dict[str, dict[int, Version]] = {}
        self._ids: dict[tuple[str, int], dict[tuple[str, int], Version]] = {}  # context, id -> its versions
        self._same: dict[Same, int] = {}
        self._referrers: dict[tuple[str, int], dict[tuple[str, int], Version]] = {}
        self._highest: dict[str, int] = {}

    def replay(self, key: Json, value: Json | None, timestamp: int | None = None) -> None:
        """Take in a record: nothing else changes the store. Kinds that only another registry knows are ignored."""
        kind = key.get("keytype")
        if kind == SCHEMA:
            self._replay_schema(key["subject"], int(key["version"]), value, timestamp)
        elif kind in (CONFIG, MODE):
            self._replay_setting(kind, key.get("subject"), value)
        elif kind == CONTEXT:
            (self._contexts.discard if value is None else self._contexts.add)(key["context"])
        elif kind == DELETE_SUBJECT and value is not None:
            self._delete_subject(value["subject"], int(value["version"]))
        elif kind == CLEAR_SUBJECT and value is not None:
            self._clear(value.get("subject"))

    def _replay_schema(self, subject: str, number: int, value: Json | None, timestamp: int | None) -> None:
        if value is None:
            self._remove(subject, number)
            return
        version = version_of(value, timestamp)
        context = names.context_of(subject)
        others = self._ids.get((context, version.id), {})
        if any(other.schema != version.schema for place, other in others.items() if place != (subject, number)):
            return  # two registries wrote the same id; the first one counts, as in Confluent's
        self._put(version)

    def _replay_setting(self, kind: str, subject: str | None, value: Json | None) -> None:
        table: dict[str | None, Any] = self.configs if kind == CONFIG else self.modes
        if kind == CONFIG:
            (self.aliased.add if (value or {}).get("alias") else self.aliased.discard)(subject)
        if value is None:
            table.pop(subject, None)
        elif kind == CONFIG:
            table[subject] = {name: item for name, item in value.items() if name != "subject"}
        else:
            table[subject] = value["mode"]

    def _delete_subject(self, subject: str, up_to: int) -> None:
        for version in self.versions(subject, deleted=False):
            if version.version <= up_to:
                self._put(version.but(deleted=True))

    def _clear(self, wanted: str | None) -> None:
        for subject in self.subjects(wanted, deleted=True):
            for version in self.versions(subject):
                if version.deleted:
                    self._remove(subject, version.version)

    def _put(self, version: Version) -> None:
        self._remove(version.subject, version.version, keep_place=True)
        context, place = names.context_of(version.subject), (version.subject, version.version)
        self._highest[context] = max(version.id, self._highest.get(context, 0))
        self._ids.setdefault((context, version.id), {})[place] = version
        self._same.setdefault((context, version.type, version.md5), version.id)
        for target in _targets(version):
            self._referrers.setdefault(target, {})[place] = version
        self._subjects.setdefault(version.subject, {})[version.version] = version

    def _remove(self, subject: str, number: int, *, keep_place: bool = False) -> None:
        version = self._subjects.get(subject, {}).get(number)
        if version is None:
            return
        context, place = names.context_of(subject), (subject, number)
        if not keep_place:
            del self._subjects[subject][number]
            if not self._subjects[subject]:
                del self._subjects[subject]
        shared = self._ids[context, version.id]
        shared.pop(place, None)
        if not any(other.md5 == version.md5 for other in shared.values()):
            self._same.pop((context, version.type, version.md5), None)
        if not shared:
            del self._ids[context, version.id]
        for target in _targets(version):
            self._referrers.get(target, {}).pop(place, None)

    def subjects(self, wanted: str | None = None, *, deleted: bool = False) -> list[str]:
        """List subjects in order: a single one, those of a context, or all; soft deleted ones on demand."""
        if wanted is not None and not names.is_context(wanted):
            return [wanted] if self.versions(wanted, deleted=deleted) else []
        every = sorted(self._subjects)
        return [name for name in every if names.matches(name, wanted) and self.versions(name, deleted=deleted)]

    def versions(self, subject: str, *, deleted: bool = True) -> list[Version]:
        """List the versions of a subject in order, with or without soft deleted ones."""
        found = sorted(self._subjects.get(subject, {}).copy().items())
        return [version for _, version in found if deleted or not version.deleted]

    def version(self, subject: str, number: int, *, deleted: bool = True) -> Version | None:
        """Return one version, or the latest."""
        if number == LATEST:
            every = self.versions(subject, deleted=deleted)
            return every[-1] if every else None
        found = self._subjects.get(subject, {}).get(number)
        return found if found and (deleted or not found.deleted) else None

    def with_id(self, context: str, id: int) -> list[Version]:
        """Return all versions of an id in a context, by subject and version."""
        return [version for _, version in sorted(self._ids.get((context, id), {}).copy().items())]

    def id_of(self, context: str, version: Version) -> int | None:
        """Return the id that this content has in a context."""
        return self._same.get((context, version.type, version.md5))

    def with_md5(self, context: str, md5: bytes) -> Version | None:
        """Return a version that has this digest in a context."""
        for type in TYPES:
            if (id := self._same.get((context, type, md5))) is not None:
                return next((version for version in self.with_id(context, id) if version.md5 == md5), None)
        return None

    def referrers(self, subject: str, number: int) -> list[Version]:
        """Return the versions that refer to this one, soft deleted ones too."""
        return [version for _, version in sorted(self._referrers.get((subject, number), {}).copy().items())]

    def contexts(self) -> list[str]:
        """List the default context first, then the others in order."""
        return [names.DEFAULT, *sorted(self._contexts - {names.DEFAULT})]

    def highest_id(self, context: str) -> int:
        return self._highest.get(context, 0)

    def scope(self, subject: str | None) -> Iterator[str | None]:
        """Walk over the places of a subject's setting: the subject, its context, what all contexts share."""
        yield subject
        if subject is not None:
            context = names.context_of(subject)
            yield names.prefix_of(context) or None
        yield names.GLOBAL


def _targets(version: Version) -> set[tuple[str, int]]:
    return {(names.within(version.subject, one.subject), one.version) for one in version.references}

"""What changes a registry: each command reads the store and returns records to write and an answer.

Only the leader runs them, one after the other, on a store that has read the topic to its end. Nothing changes here:
the records change the store when they are read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.http import HttpError
from moldau.registry import names, policies
from moldau.registry.compatibility import check, check_reserved
from moldau.registry.errors import refuse
from moldau.registry.metadata import VERSION, merged_metadata, merged_rules, same_but_version, with_version
from moldau.registry.parsing import Schemas
from moldau.registry.records import (
    AVRO,
    Json,
    Record,
    Version,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    schema_record,
    schema_tombstone,
)
from moldau.registry.store import LATEST, Store
from moldau.serdes.schemas import Reference, formatted

ADDED = {*policies.METADATA, *policies.RULES}


class Change(NamedTuple):
    """Records to write, in order, and what is answered once they are read back."""

    records: tuple[Record, ...]
    answer: Any


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema that somebody brings. Version 0 and id -1 mean that the registry gives them."""

    schema: str | None
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rules: Json | None = None
    version: int = 0
    id: int = -1

    def under(self, subject: str) -> Version:
        return Version(
            subject, self.version, self.id, self.schema or "", self.type, self.references, self.metadata, self.rules
        )


@dataclass(frozen=True, slots=True)
class Registry:
    """What commands and queries work with: the state, the parser, and a few settings of the service."""

    store: Store
    schemas: Schemas
    level: str = "BACKWARD"
    validate_new: bool = True
    validate_fields: bool = False
    modes_change: bool = True

    def config(self, subject: str | None) -> Json:
        return policies.config_in_scope(self.store, subject, self.level)

    def mode(self, subject: str | None) -> str:
        return policies.mode_in_scope(self.store, subject)

    def normalizes(self, subject: str, asked: bool) -> bool:
        return asked or self.config(subject).get("normalize") is True

    def canonical(self, version: Version, *, new: bool = False, normalized: bool = False) -> Version:
        """Return a version with the text that the registry keeps."""
        parsed = self.schemas.read(version, new=new, normalized=normalized)
        return version.but(schema=parsed.text, references=parsed.references)


def register(
    registry: Registry,
    subject: str,
    given: Candidate,
    *,
    normalize: bool,
    force: bool = False,
    keeps_tags: bool = False,
    looks_first: bool = True,
) -> Change:
    """Add a version to a subject, or find the one that has this schema already: that one whatever the mode is, if the
    request and the settings add nothing to it."""
    store, config, mode = registry.store, registry.config(subject), registry.mode(subject)
    normalize = normalize and mode not in policies.IMPORTING
    looks = looks_first and not keeps_tags and ADDED.isdisjoint(config)
    if looks and (known := _known(registry, subject, given, normalize)):
        return Change((), known)
    _check_mode(registry, subject, given.id)
    every = store.versions(subject)
    live = [version for version in every if not version.deleted]
    number = every[-1].version + 1 if every else 1
    wanted = given.under(subject)
    if mode not in policies.IMPORTING:
        wanted = _fill_in(wanted, config, live[-1] if live else None, number)
        wanted = registry.schemas.tagged_as(wanted, live[-1]) if keeps_tags and live else wanted
    elif not wanted.schema.strip():
        raise refuse(42201, "Empty schema")
    strict = given.id < 0 and (config.get("validateNewSchemas") is not False) and registry.validate_new
    wanted = registry.canonical(wanted, new=strict, normalized=normalize)
    if given.version == LATEST:
        wanted = wanted.but(version=0)
    found, wanted = _registered(registry, wanted, live)
    if found is not None:
        return Change((), found)
    if mode not in policies.IMPORTING and not force:
        messages = incompatibilities(registry, subject, wanted, live)
        if messages:
            raise refuse(40901, subject, f"[{', '.join(messages)}]")
    return _added(registry, wanted, every, number, mode)


def _known(registry: Registry, subject: str, given: Candidate, normalize: bool) -> Version | None:
    """Find the live version that a request brings again. Version -1 means the latest alone; a version or an id that the
    request names must be its own."""
    live = registry.store.versions(subject, deleted=False)
    if not live or not (given.schema or "").strip():
        return None
    wanted = registry.canonical(given.under(subject), normalized=normalize)
    found = same_version(registry, wanted, live[-1:] if given.version == LATEST else live)
    if found is None or given.id not in (LATEST, found.id):
        return None
    if given.version in (0, LATEST, found.version):
        return found if given.version <= 0 or given.id == found.id else None
    other = registry.store.version(subject, given.version, deleted=False)
    return other if other and (other.id, other.md5) == (given.id, found.md5) else None


def same_version(registry: Registry, wanted: Version, versions: list[Version]) -> Version | None:
    """Find, among versions that come oldest first, one of just this content, or otherwise the newest that it
    matches."""
    newest_first = versions[::-1]
    exact = next((one for one in newest_first if (one.md5, one.type) == (wanted.md5, wanted.type)), None)
    return exact or next((one for one in newest_first if is_same(registry, wanted, one)), None)


def _check_mode(registry: Registry, subject: str, id: int) -> None:
    mode, place = registry.mode(subject), _subject(subject)
    if mode in policies.READ_ONLY:
        raise refuse(42205, f"{place} is in read-only mode")
    if id >= 0 and mode not in policies.IMPORTING:
        raise refuse(42205, f"{place} takes no ids: its mode is not IMPORT.")
    if id < 0 and mode != policies.READWRITE:
        raise refuse(42205, f"{place} cannot be written: its mode is not READWRITE.")


def _fill_in(wanted: Version, config: Json, previous: Version | None, number: int) -> Version:
    """Fill in the schema of the previous version if there is none, and metadata and rules of previous version and
    settings."""
    if not wanted.schema.strip():
        if previous is None:
            raise refuse(42201, "Empty schema")
        wanted = wanted.but(schema=previous.schema, type=previous.type, references=previous.references)
    return with_defaults(wanted, config, previous, number)


def with_defaults(wanted: Version, config: Json, previous: Version | None, number: int | None) -> Version:
    """Set metadata and rules: the settings' defaults, what is given or otherwise the previous version's, the
    overrides."""
    own = wanted.metadata if wanted.metadata is not None else previous.metadata if previous else None
    metadata = merged_metadata(config.get("defaultMetadata"), own, config.get("overrideMetadata"))
    own = wanted.rules if wanted.rules is not None else previous.rules if previous else None
    rules = merged_rules(config.get("defaultRuleSet"), own, config.get("overrideRuleSet"))
    has_version = VERSION in ((metadata or {}).get("properties") or {})
    if number is not None and (wanted.version != 0 or has_version):
        metadata = with_version(metadata, number)
    return wanted.but(metadata=metadata, rules=rules)


def _registered(registry: Registry, wanted: Version, live: list[Version]) -> tuple[Version | None, Version]:
    """Find the version that has this already; otherwise return None and the candidate with the id that its content
    has."""
    known = registry.store.id_of(names.context_of(wanted.subject), wanted)
    if known is not None and wanted.id in (LATEST, known):
        if wanted.version == 0:
            for version in reversed(live):
                if version.id == known and version.md5 == wanted.md5:
                    return version, wanted
        wanted = wanted.but(id=known)
    if wanted.version == 0:
        for version in reversed(live):
            if wanted.id in (LATEST, version.id) and is_same(registry, wanted, version):
                return version, wanted
    return None, wanted


def is_same(registry: Registry, wanted: Version, version: Version) -> bool:
    """Say whether a schema matches a version: equal but for the version in its metadata, or with references
    resolved."""
    if wanted.type != version.type or wanted.rules != version.rules:
        return False
    if not same_but_version(wanted.metadata, version.metadata, version.version):
        return False
    if (wanted.schema, wanted.references) == (version.schema, version.references):
        return True
    if wanted.references or not version.references or wanted.type != AVRO:
        return False
    return formatted(registry.schemas.read(version), "resolved") == wanted.schema


def incompatibilities(registry: Registry, subject: str, wanted: Version, previous: list[Version]) -> list[str]:
    """Return what makes a schema incompatible with versions that come oldest first."""
    config = registry.config(subject)
    new = registry.schemas.read(wanted)
    parsed = [registry.schemas.read(version) for version in previous]
    messages: list[str] = []
    if config.get("validateFields") or (config.get("validateFields") is None and registry.validate_fields):
        messages = check_reserved(new, parsed[-1] if parsed else None)
    group = config.get("compatibilityGroup")
    if group is not None:
        of = lambda version: ((version.metadata or {}).get("properties") or {}).get(group)  # noqa: E731
        parsed = [old for old, version in zip(parsed, previous, strict=True) if of(version) == of(wanted)]
    lenient = config.get("compatibilityPolicy") == "LENIENT"
    return messages + check(config[policies.LEVEL], new, parsed, lenient=lenient)


def _added(registry: Registry, wanted: Version, every: list[Version], number: int, mode: str) -> Change:
    store, context = registry.store, names.context_of(wanted.subject)
    if wanted.version > 0 and wanted.version != number and mode not in policies.IMPORTING:
        raise refuse(42201, f"Version {wanted.version} does not follow: the next is {number}.")
    version = wanted.but(version=wanted.version if wanted.version > 0 else number)
    if version.id >= 0:
        if any(other.md5 != version.md5 for other in store.with_id(context, version.id)):
            raise refuse(42205, f"Id {version.id} of context {context} belongs to another schema.")
    else:
        version = version.but(id=store.highest_id(context) + 1)
    records = []
    if context not in store.contexts():
        records.append(context_record(context))
    for old in every:
        same = old.deleted and old.id == version.id and old.version < version.version
        if same and not store.referrers(old.subject, old.version):
            records.append(schema_tombstone(old))
    return Change((*records, schema_record(version)), version)


def delete_version(registry: Registry, subject: str, number: int, *, permanent: bool) -> Change:
    """Mark a version as deleted, or delete it for good if it was marked before."""
    store = registry.store
    if store.version(subject, number) and not permanent and not store.version(subject, number, deleted=False):
        raise refuse(40406, subject, number)
    version = store.version(subject, number, deleted=permanent or number != LATEST)
    if version is None:
        raise refuse(40402, number) if store.versions(subject) else refuse(40401, subject)
    _check_writable(registry, subject)
    if referrers(registry, version, deleted=permanent):
        raise refuse(42206, _place(version))
    if not permanent:
        return Change((schema_record(version.but(deleted=True)),), version.version)
    if not version.deleted:
        raise refuse(40407, subject, version.version)
    rest = [other for other in store.versions(subject) if other.version != version.version]
    return Change((schema_tombstone(version), *(() if rest else _forgotten(store, subject))), version.version)


def delete_subject(registry: Registry, subject: str, *, permanent: bool) -> Change:
    """Mark all versions of a subject as deleted, or delete them for good."""
    store = registry.store
    every = store.versions(subject)
    live = store.versions(subject, deleted=False)
    if not every:
        raise refuse(40401, subject)
    if not permanent and not live:
        raise refuse(40404, subject)
    _check_writable(registry, subject)
    doomed = every if permanent else live
    for version in doomed:
        if any(other.subject != subject for other in referrers(registry, version, deleted=permanent)):
            raise refuse(42206, _place(version))
    if permanent and live:
        raise refuse(40405, subject)
    numbers = [version.version for version in doomed]
    if not permanent:
        return Change((delete_subject_record(subject, numbers[-1]),), numbers)
    # The newest first: a version may refer to an older one of its own subject.
    return Change((*map(schema_tombstone, reversed(doomed)), *_forgotten(store, subject)), numbers)


def _forgotten(store: Store, subject: str) -> list[Record]:
    """Delete the settings of a subject that is gone."""
    gone = [mode_record(subject, None)] if subject in store.modes else []
    return gone + ([config_record(subject, None)] if subject in store.configs else [])


def referrers(registry: Registry, version: Version, *, deleted: bool) -> list[Version]:
    """Return the versions that refer to this one."""
    found = registry.store.referrers(version.subject, version.version)
    return [other for other in found if deleted or not other.deleted]


def _check_writable(registry: Registry, subject: str | None) -> None:
    if registry.mode(subject) in policies.READ_ONLY:
        raise refuse(42205, f"{_subject(subject or '')} is in read-only mode")


def _subject(subject: str) -> str:
    return f"Subject {subject} in context {names.context_of(subject)}"


def _place(version: Version) -> str:
    return f"{{magic=1,keytype=SCHEMA,subject={version.subject},version={version.version}}}"


def set_config(registry: Registry, subject: str | None, change: Json) -> Change:
    """Set the settings of a subject, of a context, or of all; what is not named stays."""
    _check_writable(registry, subject)
    config = policies.merged_config(registry.store.configs.get(subject), change)
    return Change((config_record(subject, config),), config)


def delete_config(registry: Registry, subject: str | None) -> Change:
    """Go back to inherited settings; the answer is what was set."""
    before = policies.own_config(registry.store, subject, registry.level)
    if before is None:
        raise refuse(40401, subject)
    _check_writable(registry, subject)
    return Change((config_record(subject, None),), before)


def set_mode(registry: Registry, subject: str | None, mode: str | None, *, force: bool) -> Change:
    """Set what may be done with a subject. To import, it must be empty, unless forced."""
    if not registry.modes_change:
        raise refuse(42205, "Modes are fixed here: mode.mutability is false.")
    if mode is not None and (mode := mode.upper()) not in policies.MODES:
        raise refuse(42204)
    if mode == policies.FORWARD and subject != names.GLOBAL:
        raise HttpError(42204, "FORWARD is a mode of the whole registry, not of a subject or context.")
    records: list[Record] = []
    if mode == policies.IMPORT and registry.mode(subject) != policies.IMPORT and not force:
        records = _emptied(registry, subject)
    return Change((*records, mode_record(subject, mode)), mode)


def _emptied(registry: Registry, subject: str | None) -> list[Record]:
    store = registry.store
    if store.subjects(subject):
        raise refuse(42205, "To import, there must be no subjects yet; force=true does without that.")
    doomed = [version for name in store.subjects(subject, deleted=True) for version in store.versions(name)]
    for version in doomed:
        if referrers(registry, version, deleted=True):
            raise refuse(42206, _place(version))
    return [*map(schema_tombstone, doomed), clear_subject_record(subject)]


def delete_mode(registry: Registry, subject: str | None, *, recursive: bool) -> Change:
    """Go back to the inherited mode; with `recursive` for all subjects of a context as well."""
    if not registry.modes_change:
        raise refuse(42205, "Modes are fixed here: mode.mutability is false.")
    modes = registry.store.modes
    before = modes.get(subject, policies.READWRITE if subject is None else None)
    if before is None and not recursive:
        raise refuse(40401, subject)
    places = [subject]
    if recursive and names.is_context(subject):
        context = subject or ""
        places += [
            place for place in list(modes) if place and not names.is_context(place) and names.matches(place, context)
        ]
    return Change(tuple(mode_record(place, None) for place in places), before)


def delete_context(registry: Registry, context: str) -> Change:
    """Remove a context that has no subjects any more from the list."""
    if registry.store.subjects(context, deleted=True):
        raise refuse(42211, context)
    return Change((context_record(names.context_of(context), present=False),), None)

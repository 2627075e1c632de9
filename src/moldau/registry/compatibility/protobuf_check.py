"""What changed from one Protobuf file to the next, and which changes keep old data readable.

Fields are the same by number, messages and enums by name. A type that stands in the file itself is compared where it
stands; one that is imported is compared where it is used, unless both files refer to the same version of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from moldau.serdes.schemas import Parsed, imports_of
from moldau.serdes.schemas.proto import SCALARS, Enum, Field, File, Message
from moldau.serdes.schemas.proto_scope import Entry, Scope, scope_of

from .differences import PAIRS, Difference, TooLarge, messages_of, shortened

COMPATIBLE = frozenset((
    "ENUM_ADDED", "ENUM_CONST_ADDED", "ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED", "ENUM_REMOVED", "FIELD_ADDED",
    "FIELD_NAME_CHANGED", "FIELD_REMOVED", "FIELD_STRING_OR_BYTES_LABEL_CHANGED", "MESSAGE_ADDED", "MESSAGE_MOVED",
    "ONEOF_ADDED", "ONEOF_FIELD_ADDED", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL", "ONEOF_REMOVED",
))  # fmt: skip
SENTENCES = {
    "PACKAGE_CHANGED": "The package of the {reader} schema is not that of the {writer} schema",
    "MESSAGE_REMOVED": "The message at path '{path}' of the {writer} schema is missing in the {reader} schema",
    "FIELD_KIND_CHANGED": "The field at path '{path}' is of another kind in the {reader} than in the {writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The scalar at path '{path}' of the {reader} schema cannot read that of the {writer}",
    "FIELD_NAMED_TYPE_CHANGED": "The field at path '{path}' has another message type in the {reader} schema than in "
    "the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The number at path '{path}' has another label in the {reader} schema than in the "
    "{writer} schema",
    "REQUIRED_FIELD_ADDED": "The required field at path '{path}' of the {reader} schema is missing in the {writer}",
    "REQUIRED_FIELD_REMOVED": "The required field at path '{path}' of the {writer} schema is missing in the {reader}",
    "ONEOF_FIELD_REMOVED": "The field of a oneof at path '{path}' of the {writer} schema is missing in the {reader}",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Several fields of the oneof at path '{path}' of the {reader} schema can be set "
    "together in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "Fields of the oneof at path '{path}' of the {reader} schema can be set together "
    "in the {writer} schema",
}
# Scalars of one group read each other's data; each kind not listed is a group of its own.
KINDS = {
    "number": "bool int32 int64 uint32 uint64",
    "signed": "sint32 sint64",
    "fixed32": "fixed32 sfixed32",
    "fixed64": "fixed64 sfixed64",
    "text": "bytes string",
}
GROUPS = {kind: group for group, kinds in KINDS.items() for kind in kinds.split()}
Path = tuple[str, ...]
Node = TypeVar("Node", Message, Enum)


def messages(reader: Parsed, writer: Parsed, lenient: bool, reader_is: str, writer_is: str) -> list[str]:
    return messages_of(differences(writer, reader), COMPATIBLE, SENTENCES, reader_is, writer_is)


def differences(original: Parsed, update: Parsed) -> list[Difference]:
    old, new = scope(original), scope(update)
    files: tuple[File, File] = original.raw, update.raw
    changed = [Difference("PACKAGE_CHANGED")] if files[0].package != files[1].package else []
    return changed + Comparison(old, new).types(files[0].types, files[1].types, ())


def scope(parsed: Parsed) -> Scope:
    return scope_of(parsed.raw, imports_of(parsed), parsed.references)


@dataclass(frozen=True, slots=True)
class Members:
    """The fields of a message by number, wherever they stand, and the oneof of those that are in one."""

    fields: dict[int, Field]
    oneof: dict[int, str]
    oneofs: list[str]

    @classmethod
    def of(cls, message: Message) -> Members:
        inside = {entry.number: oneof.name for oneof in message.oneofs for entry in oneof.fields}
        fields = {entry.number: entry for entry in message.every_field()}
        return cls(fields, inside, [oneof.name for oneof in message.oneofs])

    def numbers_of(self, oneof: str) -> list[int]:
        return [number for number, name in self.oneof.items() if name == oneof]


@dataclass(slots=True)
class Comparison:
    """Compares within two packages. `known` has the imported messages that were compared; one that is being compared
    when it is met again has nothing to add."""

    old: Scope
    new: Scope
    known: dict[tuple[int, int], list[Difference]] = field(default_factory=dict)

    def types(self, old: Sequence[Message | Enum], new: Sequence[Message | Enum], path: Path) -> list[Difference]:
        found = self.messages(kept(old, Message), kept(new, Message), path)
        enums = (kept(old, Enum), kept(new, Enum))
        for name in names(*enums):
            before, after = enums[0].get(name), enums[1].get(name)
            if before is None or after is None:
                found.append(Difference("ENUM_REMOVED" if after is None else "ENUM_ADDED", (*path, name)))
            else:
                found += constants_differ(before, after, (*path, name))
        return found

    def messages(self, old: dict[str, Message], new: dict[str, Message], path: Path) -> list[Difference]:
        found: list[Difference] = []
        was, now = ({name: position for position, name in enumerate(nodes)} for nodes in (old, new))
        for name in names(old, new):
            before, after, where = old.get(name), new.get(name), (*path, name)
            if before is not None and after is not None:
                found += self.message(before, after, where)
                if was[name] != now[name]:
                    found.append(Difference("MESSAGE_MOVED", where))
            elif not (before or after or Message("")).is_map_entry:
                found.append(Difference("MESSAGE_REMOVED" if after is None else "MESSAGE_ADDED", where))
        return found

    def message(self, old: Message, new: Message, path: Path) -> list[Difference]:
        before, after = Members.of(old), Members.of(new)
        found = exclusions(before, after, path)
        for name in sorted({*before.oneofs, *after.oneofs}):
            if name not in after.oneofs or name not in before.oneofs:
                found.append(Difference("ONEOF_ADDED" if name in after.oneofs else "ONEOF_REMOVED", (*path, name)))
        for number in sorted({*before.fields, *after.fields}):
            found += self.field(number, before, after, path)
        return found + self.types(with_groups(old), with_groups(new), path)

    def field(self, number: int, before: Members, after: Members, path: Path) -> list[Difference]:
        old, new = before.fields.get(number), after.fields.get(number)
        was, now = before.oneof.get(number), after.oneof.get(number)
        if new is None:
            return removed(number, before, after, path)
        where = (*path, now, str(number)) if now else (*path, str(number))
        if old is None:
            kind = "ONEOF_" if now else "REQUIRED_" if new.label == "required" else ""
            return [Difference(f"{kind}FIELD_ADDED", where)]
        found = [Difference("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", where)] if was and not now else []
        if old.name != new.name:
            found.append(Difference("FIELD_NAME_CHANGED", where))
        if bool(old.group) != bool(new.group):
            return [*found, Difference("FIELD_KIND_CHANGED", where)]
        labels = (old.label, new.label) if old.label and new.label else None
        return found + self.kinds(old.type, new.type, labels, path, where)

    def kinds(self, old: str, new: str, labels: tuple[str, str] | None, path: Path, where: Path) -> list[Difference]:
        before, after = Kind.of(old, self.old, path), Kind.of(new, self.new, path)
        if before.kind != after.kind:
            return [Difference("FIELD_KIND_CHANGED", where)]
        match before.kind:
            case "scalar":
                return scalars_differ(before.group, after.group, labels, where)
            case "map":
                pairs = zip(before.types, after.types, strict=True)
                return [one for was, now in pairs for one in self.kinds(was, now, None, path, where)]
        return self.named(before, after, where)

    def named(self, before: Kind, after: Kind, where: Path) -> list[Difference]:
        old, new = before.entry, after.entry
        if old is None or new is None:
            return [] if before.name == after.name else [Difference("FIELD_NAMED_TYPE_CHANGED", where)]
        if old.local_name != new.local_name:
            return [Difference("FIELD_NAMED_TYPE_CHANGED", where)]
        if old.node is new.node or same_place(old, new):
            return []
        found = self.imported(old, new)
        if any(difference.type not in COMPATIBLE for difference in found):
            return [*found, Difference("FIELD_NAMED_TYPE_CHANGED", where)]
        return found

    def imported(self, old: Entry, new: Entry) -> list[Difference]:
        """Compare messages that stand elsewhere; paths start with the message's own name."""
        key = (id(old.node), id(new.node))
        if key not in self.known and isinstance(old.node, Message) and isinstance(new.node, Message):
            self.known[key] = []
            if len(self.known) > PAIRS:
                raise TooLarge
            inside = Comparison(self.old.within(old.package), self.new.within(new.package), self.known)
            found = inside.message(old.node, new.node, tuple(old.local_name.split(".")))
            self.known[key] = shortened(found, COMPATIBLE)
        return self.known.get(key, [])


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field's type is: a scalar of a group (enums are numbers), a map of two types, or a message."""

    kind: str
    name: str
    group: str = ""
    types: tuple[str, ...] = ()
    entry: Entry | None = None

    @classmethod
    def of(cls, name: str, scope: Scope, path: Path) -> Kind:
        if name in SCALARS:
            return cls("scalar", name, GROUPS.get(name, name))
        written = Field("", name, 0).map_types
        entry = None if written else scope.entry(name, path)
        pair = written or (entry.map_types if entry else None)
        if pair:
            return cls("map", name, types=pair)
        if entry and isinstance(entry.node, Enum):
            return cls("scalar", name, "number")
        return cls("message", name, entry=entry)


def kept(nodes: Iterable[Message | Enum], kind: type[Node]) -> dict[str, Node]:
    return {node.name: node for node in nodes if isinstance(node, kind)}


def with_groups(message: Message) -> list[Message | Enum]:
    return [*message.types, *(entry.group for entry in message.every_field() if entry.group)]


def names(old: Iterable[str], new: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*old, *new)))


def same_place(old: Entry, new: Entry) -> bool:
    if old.reference is None or new.reference is None:
        return False
    return (old.reference.subject, old.reference.version) == (new.reference.subject, new.reference.version)


def scalars_differ(old: str, new: str, labels: tuple[str, str] | None, where: Path) -> list[Difference]:
    if old != new:
        return [Difference("FIELD_SCALAR_KIND_CHANGED", where)]
    if labels is None or labels[0] == labels[1]:
        return []
    return [Difference(f"FIELD_{'STRING_OR_BYTES' if old == 'text' else 'NUMERIC'}_LABEL_CHANGED", where)]


def constants_differ(old: Enum, new: Enum, path: Path) -> list[Difference]:
    before = {constant.number: constant.name for constant in old.constants}
    after = {constant.number: constant.name for constant in new.constants}
    found: list[Difference] = []
    for number in sorted({*before, *after}):
        if before.get(number) != after.get(number):
            change = "REMOVED" if number not in after else "ADDED" if number not in before else "CHANGED"
            found.append(Difference(f"ENUM_CONST_{change}", (*path, str(number))))
    return found


def removed(number: int, before: Members, after: Members, path: Path) -> list[Difference]:
    """Compare a field that is gone. A oneof that is gone with all its fields breaks nothing; one that lost some
    does."""
    oneof = before.oneof.get(number)
    if oneof is None:
        required = before.fields[number].label == "required"
        return [Difference("REQUIRED_FIELD_REMOVED" if required else "FIELD_REMOVED", (*path, str(number)))]
    survives = any(other in after.fields for other in before.numbers_of(oneof))
    if oneof in after.oneofs or survives:
        return [Difference("ONEOF_FIELD_REMOVED", (*path, oneof, str(number)))]
    return []


def exclusions(before: Members, after: Members, path: Path) -> list[Difference]:
    """Find fields that could be set together and no longer can: a oneof that takes from more than one place."""
    found: list[Difference] = []
    for oneof in after.oneofs:
        known = [number for number in after.numbers_of(oneof) if number in before.fields]
        free = [number for number in known if number not in before.oneof]
        places = {before.oneof[number] for number in known if number in before.oneof}
        if len(places) + len(free) > 1:
            several = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(free) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            found.append(Difference(several, (*path, oneof)))
    return found

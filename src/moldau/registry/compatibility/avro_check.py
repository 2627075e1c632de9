"""What a reader's Avro schema cannot read of a writer's, by the rules of schema resolution.

Types, paths and details of the findings are those of Java's SchemaCompatibility. A pair of schemas is compared once:
recursive schemas come to an end, and wide ones do not grow exponentially. A pair that is met again while it is being
compared counts as readable, and so as no finding of its own. What differs in a type that is used in many places differs
in each of them, so no more is kept of a pair than can be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.registry.compatibility.differences import MOST, PAIRS, TooLarge
from moldau.serdes.schemas import Parsed
from moldau.serdes.schemas.avro import Array, Field, Map, Named, Schema, Union, name_of

# Kinds that a reader of a kind also reads.
PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": "The fixed at path '{path}' has another size in the {reader} than in the {writer} schema",
    "MISSING_ENUM_SYMBOLS": "The enum at path '{path}' of the {reader} schema lacks symbols of the {writer}: {detail}",
    "MISSING_UNION_BRANCH": "The union at path '{path}' of the {reader} schema lacks a type of the {writer} schema",
    "NAME_MISMATCH": "The type at path '{path}' has another name in the {reader} than in the {writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{path}' of the {reader} schema has no default "
    "value, and the {writer} schema does not have it",
    "TYPE_MISMATCH": "The type at path '{path}' of the {reader} schema does not match the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class Finding:
    type: str
    path: str
    detail: str


@dataclass(slots=True)
class Comparison:
    known: dict[tuple[int, int], list[Finding]] = field(default_factory=dict)

    def compare(self, reader: Schema, writer: Schema, path: str) -> list[Finding]:
        key = (id(reader), id(writer))
        if key not in self.known:
            if len(self.known) >= PAIRS:
                raise TooLarge
            self.known[key] = []
            self.known[key] = self.differ(reader, writer, path)[:MOST]
        return self.known[key]

    def differ(self, reader: Schema, writer: Schema, path: str) -> list[Finding]:
        if isinstance(writer, Union):
            return self.writer_union(reader, writer, path)
        if isinstance(reader, Union):
            return self.reader_union(reader, writer, path)
        match reader, writer:
            case Array(), Array():
                return self.compare(reader.items, writer.items, f"{path}/items")
            case Map(), Map():
                return self.compare(reader.values, writer.values, f"{path}/values")
            case Named(), Named() if kind_of(reader) == kind_of(writer):
                return [*names_differ(reader, writer, path), *self.named_differ(reader, writer, path)]
        if reader.kind == writer.kind or writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
        detail = f"reader type: {kind_of(reader)} not compatible with writer type: {kind_of(writer)}"
        return [Finding("TYPE_MISMATCH", path or "/", detail)]

    def writer_union(self, reader: Schema, writer: Union, path: str) -> list[Finding]:
        """Compare each branch that may be written; of a union as reader, one branch must read it."""
        found: list[Finding] = []
        for position, branch in enumerate(writer.branches):
            if isinstance(reader, Union):
                if self.compare(reader, branch, f"{path}/{position}"):
                    found.append(missing_branch(branch, f"{path}/{position}"))
            else:
                found += self.compare(reader, branch, f"{path}/{position}")
        return found

    def reader_union(self, reader: Union, writer: Schema, path: str) -> list[Finding]:
        """Look for a branch that reads it, first for the one of its name, which most often does."""
        likely = sorted(reader.branches, key=lambda branch: name_of(branch) != name_of(writer))
        if any(not self.compare(branch, writer, path) for branch in likely):
            return []
        return [missing_branch(writer, path or "/")]

    def named_differ(self, reader: Named, writer: Named, path: str) -> list[Finding]:
        by_kind: dict[str, Callable[[Named, Named, str], list[Finding]]] = {
            "enum": symbols_differ,
            "fixed": sizes_differ,
        }
        return by_kind.get(reader.kind, self.fields_differ)(reader, writer, path)

    def fields_differ(self, reader: Named, writer: Named, path: str) -> list[Finding]:
        written = {entry.name: entry for entry in writer.fields}
        found: list[Finding] = []
        for position, entry in enumerate(reader.fields):
            if len(found) >= MOST:
                break
            where = f"{path}/fields/{position}"
            source = written_field(entry, written)
            if source is not None:
                found += self.compare(entry.type, source.type, f"{where}/type")
            elif not entry.has_default:
                found.append(Finding("READER_FIELD_MISSING_DEFAULT_VALUE", where, entry.name))
        return found


def find(reader: Schema, writer: Schema) -> list[Finding]:
    """Find all that keeps the reader's schema from reading data of the writer's, in the order of the reader."""
    return Comparison().compare(reader, writer, "")


def kind_of(schema: Schema) -> str:
    return "RECORD" if schema.kind == "error" else schema.kind.upper()


def written_field(entry: Field, written: dict[str, Field]) -> Field | None:
    """Find the writer's field that a reader's takes its values from: of its own name, or otherwise of an alias. (Java
    refuses to compare where both are there, even a schema with itself.)"""
    return next((written[name] for name in (entry.name, *entry.aliases) if name in written), None)


def missing_branch(branch: Schema, path: str) -> Finding:
    return Finding("MISSING_UNION_BRANCH", path, f"reader union lacking writer type: {kind_of(branch)}")


def names_differ(reader: Named, writer: Named, path: str) -> list[Finding]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [Finding("NAME_MISMATCH", f"{path}/name", f"expected: {writer.full_name}")]


def symbols_differ(reader: Named, writer: Named, path: str) -> list[Finding]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not None:
        return []
    return [Finding("MISSING_ENUM_SYMBOLS", f"{path}/symbols", f"[{', '.join(missing)}]")]


def sizes_differ(reader: Named, writer: Named, path: str) -> list[Finding]:
    if reader.size == writer.size:
        return []
    return [Finding("FIXED_SIZE_MISMATCH", f"{path}/size", f"expected: {writer.size}, found: {reader.size}")]


def messages(reader: Parsed, writer: Parsed, lenient: bool, reader_is: str, writer_is: str) -> list[str]:
    return [message(finding, reader_is, writer_is) for finding in find(reader.raw, writer.raw)]


def message(finding: Finding, reader_is: str, writer_is: str) -> str:
    words = {"path": finding.path, "detail": finding.detail, "reader": reader_is, "writer": writer_is}
    description = DESCRIPTIONS[finding.type].format(**words)
    return f"{{errorType:'{finding.type}', description:'{description}', additionalInfo:'{finding.detail}'}}"

"""Who is meant by a name in a Protobuf file: the types and extensions of the file and of all that it imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .parsed import Limits, Reference, SchemaError
from .proto import Enum, Extend, Field, File, Message
from .proto_known import known_file
from .proto_parser import parse_proto

HERE = Reference("", "", -1)  # where a type stands that the file itself defines


@dataclass(frozen=True, slots=True)
class Entry:
    """A type: the package it is in, its name without that, and the reference that it came by (None if well-known)."""

    node: Message | Enum
    package: str
    local_name: str
    reference: Reference | None

    @property
    def map_types(self) -> tuple[str, str] | None:
        """The types of key and value, of the message behind a map."""
        if not isinstance(self.node, Message) or not self.node.is_map_entry:
            return None
        types = {entry.name: entry.type for entry in self.node.fields}
        return types.get("key", ""), types.get("value", "")


@dataclass(slots=True)
class Scope:
    package: str = ""
    types: dict[str, Entry] = field(default_factory=dict)
    extensions: dict[str, tuple[Field, tuple[str, ...]]] = field(default_factory=dict)

    def find(self, name: str, path: Iterable[str]) -> str | None:
        """Return the full name of the type that is meant inside of `path`, messages within messages."""
        return self.search(self.types, name, path)

    def find_extension(self, name: str, path: Iterable[str]) -> str | None:
        return self.search(self.extensions, name, path)

    def search(self, table: Mapping[str, object], name: str, path: Iterable[str]) -> str | None:
        """Search from the inside out; a name with a dot in front is full already."""
        if name.startswith("."):
            return name[1:] if name[1:] in table else None
        prefix = [*self.package.split("."), *path] if self.package else list(path)
        while prefix:
            full = f"{'.'.join(prefix)}.{name}"
            if full in table:
                return full
            prefix.pop()
        return name if name in table else None

    def resolve(self, name: str, path: Sequence[str]) -> str:
        """Return the full name with a dot before it; SchemaError if there is no such type."""
        full = self.find(name, path)
        if full is None:
            where = f" in {'.'.join(path)}" if path else ""
            raise SchemaError(f"type {name!r} is used{where} but not defined")
        return "." + full

    def entry(self, name: str, path: Iterable[str]) -> Entry | None:
        full = self.find(name, path)
        return self.types[full] if full is not None else None

    def within(self, package: str) -> Scope:
        """Return the same names, seen from another package."""
        return Scope(package, self.types, self.extensions)

    def add(self, file: File, reference: Reference | None) -> None:
        self.add_extends(file.extends, file.package, ())
        self.add_types(file.types, file.package, (), reference)

    def add_types(
        self, nodes: Iterable[Message | Enum], package: str, path: tuple[str, ...], reference: Reference | None
    ) -> None:
        for node in nodes:
            inner = (*path, node.name)
            local = ".".join(inner)
            self.types[f"{package}.{local}" if package else local] = Entry(node, package, local, reference)
            if isinstance(node, Message):
                self.add_extends(node.extends, package, inner)
                groups = [entry.group for entry in node.every_field() if entry.group]
                self.add_types([*node.types, *groups], package, inner, reference)

    def add_extends(self, extends: Iterable[Extend], package: str, path: tuple[str, ...]) -> None:
        for extend in extends:
            for entry in extend.fields:
                full = ".".join((*([package] if package else []), *path, entry.name))
                self.extensions[full] = (entry, path)


def imported(file: File, resolved: Mapping[str, str], limits: Limits, *, strict: bool = False) -> dict[str, File]:
    """Read every file that this one imports, also through others, by its path; those that others need come first.

    `strict` refuses an import that is neither referenced nor well-known, and files that import each other.
    """
    found: dict[str, File] = {}
    open_paths: list[str] = []

    def visit(path: str) -> None:
        if path in found:
            return
        if path in open_paths:
            raise SchemaError(f"{' imports '.join([*open_paths, path])}: a circle")
        other = read(path, resolved, limits)
        if other is None:
            if strict:
                raise SchemaError(f"import {path!r} is neither a reference of the schema nor well-known")
            return
        open_paths.append(path)
        for _, further in other.imports:
            visit(further)
        open_paths.pop()
        found[path] = other

    for _, path in file.imports:
        visit(path)
    return found


def read(path: str, resolved: Mapping[str, str], limits: Limits) -> File | None:
    if path not in resolved:
        return known_file(path)
    try:
        return parse_proto(resolved[path], limits)
    except SchemaError as error:
        raise SchemaError(f"reference {path}: {error}") from None


def scope_of(file: File, imports: Mapping[str, File], references: Iterable[Reference] = ()) -> Scope:
    by_name = {reference.name: reference for reference in references}
    scope = Scope(file.package)
    for path, other in imports.items():
        scope.add(other, by_name.get(path))
    scope.add(file, HERE)
    return scope

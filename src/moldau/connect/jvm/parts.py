"""Converters, transforms and predicates of jars, as rows of the tables of ours.

An instance has a connection of its own. It is closed with the pipeline that holds it, when nothing refers to it any
more; the host then closes the Java object.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from moldau.connect.converters.kinds import Converter, ConverterClass
from moldau.connect.data import Record, Schema, SchemaAndValue
from moldau.connect.jvm.catalogue import Entry, found
from moldau.connect.jvm.codec import Typed
from moldau.connect.jvm.definition import described
from moldau.connect.jvm.host import Host
from moldau.connect.predicates import PredicateClass
from moldau.connect.transforms.kinds import Side, TransformClass

T = TypeVar("T")
HEADERS_ONLY = frozenset({"header_converter"})


class Part:
    """One Java object of a pipeline."""

    def __init__(self, host: Host, entry: Entry, role: str, config: Mapping[str, Any]) -> None:
        self._link = host.link("part", entry.location, entry.class_name, role, dict(config))
        weakref.finalize(self, self._link.close)

    def apply(self, record: Record) -> Record | None:
        return self._link.call("apply", record)

    def test(self, record: Record) -> bool:
        return self._link.call("test", record)

    def write(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self._link.call("write", topic, schema, Typed(schema, value))

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(*self._link.call("read", topic, data))


class Rows(Mapping[str, T], Generic[T]):
    """The plugins of some kinds by name; a row is made when it is looked up, because that asks the plugin."""

    def __init__(self, make: Callable[[Entry, Host, frozenset[str]], T], *kinds: str) -> None:
        self._make, self._kinds = make, kinds

    def _entries(self) -> dict[str, tuple[Entry, Host, frozenset[str]]]:
        made: dict[str, tuple[Entry, Host, frozenset[str]]] = {}
        for entry, host in found(*self._kinds):
            before = made[entry.class_name][2] if entry.class_name in made else frozenset()
            made[entry.class_name] = entry, host, before | {entry.kind}
        return made

    def __getitem__(self, name: str) -> T:
        return self._make(*self._entries()[name])

    def __contains__(self, name: object) -> bool:
        return name in self._entries()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def versions(self) -> dict[str, str]:
        return {name: entry.version for name, (entry, _, _) in self._entries().items()}


class Both(Mapping[str, T], Generic[T]):
    """Two tables as one; the first wins. A row is made only when it is looked up."""

    def __init__(self, first: Mapping[str, Any], second: Mapping[str, T]) -> None:
        self._tables = first, second

    def __getitem__(self, name: str) -> T:
        first, second = self._tables
        return first[name] if name in first else second[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._tables[0], *self._tables[1]]))

    def __len__(self) -> int:
        return len(set(self))


def _doc(entry: Entry) -> str:
    return f"A class of {entry.location}."


def _settings(entry: Entry, host: Host) -> Any:
    return described(partial(host.ask, entry.location, entry.class_name))[1]


@lru_cache(maxsize=256)
def _transform(entry: Entry, host: Host, _kinds: frozenset[str]) -> TransformClass:
    def make(config: Mapping[str, Any], _side: Side) -> Any:
        own = {name: text for name, text in config.items() if name not in ("type", "predicate", "negate")}
        return Part(host, entry, "transform", own).apply

    package, _, name = entry.class_name.rpartition(".")
    return TransformClass(name, _doc(entry), _settings(entry, host), make, False, package)


@lru_cache(maxsize=256)
def _predicate(entry: Entry, host: Host, _kinds: frozenset[str]) -> PredicateClass:
    def make(config: Mapping[str, Any]) -> Any:
        return Part(host, entry, "predicate", {name: text for name, text in config.items() if name != "type"}).test

    return PredicateClass(entry.class_name, _doc(entry), _settings(entry, host), make)


@lru_cache(maxsize=256)
def _converter(entry: Entry, host: Host, kinds: frozenset[str]) -> ConverterClass:
    def make(config: Mapping[str, Any]) -> Converter:
        part = Part(host, entry, config["converter.type"], config)
        return Converter(part.write, part.read)

    return ConverterClass(entry.class_name, _doc(entry), _settings(entry, host), make, kinds == HEADERS_ONLY)


TRANSFORMS = Rows(_transform, "transformation")
PREDICATES = Rows(_predicate, "predicate")
CONVERTERS = Rows(_converter, "converter", "header_converter")

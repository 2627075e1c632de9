"""Serdes under their names in streams: `String()`, `Json()`, `Avro(schema)`; and the defaults from settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.operators.context import TopologyError
from moldau.serdes.context import Context, Serde
from moldau.serdes.formats import FORMATS, TYPED, serde
from moldau.serdes.primitive import BYTES, DOUBLE, FLOAT, INTEGER, JSON, LONG, SHORT, STRING, UUID_TEXT, Plain
from moldau.serdes.registry import Registry

SerdeLike = Serde | str | None
URL = "schema.registry.url"


def truth(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError("it is not a bool")
    return b"\1" if value else b"\0"


def read_truth(data: bytes) -> bool:
    if len(data) != 1 or data[0] > 1:
        raise ValueError("it is not one byte, 0 or 1")
    return data == b"\1"


def nothing(value: Any) -> bytes:
    raise TypeError("only None can be written")


BOOLEAN = Plain("boolean", truth, read_truth)
VOID = Plain("void", nothing, lambda data: None)


def returning(serde: Serde) -> Callable[[], Serde]:
    return lambda: serde


String, Bytes, Boolean, UUID = returning(STRING), returning(BYTES), returning(BOOLEAN), returning(UUID_TEXT)
Short, Integer, Long = returning(SHORT), returning(INTEGER), returning(LONG)
Float, Double, Json = returning(FLOAT), returning(DOUBLE), returning(JSON)
Void = returning(VOID)  # keys or values that are always None


@dataclass(frozen=True, slots=True)
class Pending:
    """A serde with a schema. Its registry may be that of the application, which is known when the topology is built."""

    format: str
    schema: Any = None
    registry: Registry | str | None = None
    message: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def settled(self, settings: Mapping[str, Any], what: str) -> Serde:
        registry = self.registry or settings.get(URL)
        if registry is None:
            raise TopologyError(f"{what} is {self.format}, which needs a schema registry: set {URL}")
        known = Registry.connect({URL: registry}) if isinstance(registry, str) else registry
        return serde(self.format, known, self.schema, self.settings, self.message)

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        return self.settled({}, "the serde").to_bytes(value, context)

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        return self.settled({}, "the serde").from_bytes(data, context)


def Avro(schema: Any = None, registry: Registry | str | None = None, **settings: Any) -> Serde:
    return Pending("avro", schema, registry, None, dotted(settings))


def JsonSchema(schema: Any = None, registry: Registry | str | None = None, **settings: Any) -> Serde:
    return Pending("json-schema", schema, registry, None, dotted(settings))


def Protobuf(
    schema: Any = None, registry: Registry | str | None = None, message: str | None = None, **settings: Any
) -> Serde:
    return Pending("protobuf", schema, registry, message, dotted(settings))


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Turn keyword arguments into settings: `use_latest_version=True` is use.latest.version."""
    return {name.replace("_", "."): value for name, value in settings.items()}


BY_CLASS: dict[str, Callable[[], Serde]] = {
    "StringSerde": String, "BytesSerde": Bytes, "ByteArraySerde": Bytes, "ShortSerde": Short, "IntegerSerde": Integer,
    "LongSerde": Long, "FloatSerde": Float, "DoubleSerde": Double, "BooleanSerde": Boolean, "UUIDSerde": UUID,
    "VoidSerde": Void,
}  # fmt: skip


def named(name: str, what: str) -> Serde:
    """Return the serde of a format, or that of a class of Kafka, by name."""
    short = name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    if short in BY_CLASS:
        return BY_CLASS[short]()
    if name in TYPED:
        return Pending(name)
    if name in FORMATS:
        return serde(name)
    raise TopologyError(f"{what} is {name!r}, which is not known: use one of {', '.join(FORMATS)}, or a serde")


def settled(given: SerdeLike, field: str, settings: Mapping[str, Any], where: str) -> Serde:
    """Return the serde of a node's key or value: the given one, or the application's default."""
    what = f"the {field} serde of {where}"
    setting = f"default.{field}.serde"
    found = settings.get(setting) if given is None else given
    if found is None:
        raise TopologyError(f"{what} is not known: give {field}=, for example {field}=String(), or set {setting}")
    if isinstance(found, str):
        found = named(found, what)
    if isinstance(found, Pending):
        return found.settled(settings, what)
    if isinstance(found, int) or not hasattr(found, "to_bytes") or not hasattr(found, "from_bytes"):
        raise TopologyError(f"{what} is {found!r}, which is not a serde: use String(), Json() or another with to_bytes")
    return inner_settled(found, field, settings, where)


def inner_settled(found: Any, field: str, settings: Mapping[str, Any], where: str) -> Serde:
    """Settle the serdes inside a serde (of windowed keys, of changes): by `with_inner`, or by `with_each` if there are
    several.
    """
    if hasattr(found, "with_each"):
        return found.with_each(lambda inner: settled(inner, field, settings, where))
    if not hasattr(found, "with_inner"):
        return found
    return found.with_inner(settled(found.inner, field, settings, where))

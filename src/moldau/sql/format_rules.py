"""What each format can hold: rows, and the refusals that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.sql.catalogue import Columns, Format, quoted_columns
from moldau.sql.errors import SqlError
from moldau.sql.printer import quoted, type_text
from moldau.sql.tree import ArrayType, MapType, Primitive, StructType, Type
from moldau.sql.types import base


@dataclass(frozen=True, slots=True)
class Rule:
    """A format: whether it may wrap and unwrap single columns, finds schemas in a registry, and what it refuses."""

    wraps: bool
    unwraps: bool
    infers: bool
    single: bool = False
    refused: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()


_NESTED = frozenset({"ARRAY", "MAP", "STRUCT"})
_SIMPLE_ONLY = _NESTED | {"BOOLEAN", "DECIMAL", "DATE", "TIME", "TIMESTAMP"}
_REGISTRY = frozenset({"fullSchemaName", "schemaId"})

RULES: dict[str, Rule] = {
    "KAFKA": Rule(False, True, False, single=True, refused=_SIMPLE_ONLY),
    "DELIMITED": Rule(False, True, False, refused=_NESTED, properties=frozenset({"delimiter"})),
    "JSON": Rule(True, True, False),
    "JSON_SR": Rule(True, True, True, properties=_REGISTRY),
    "AVRO": Rule(True, True, True, properties=_REGISTRY),
    "PROTOBUF": Rule(True, False, True, properties=_REGISTRY | {"unwrapPrimitives", "nullableRepresentation"}),
    "PROTOBUF_NOSR": Rule(True, False, False, properties=frozenset({"unwrapPrimitives", "nullableRepresentation"})),
    "NONE": Rule(False, False, False),
}
_PROTOBUF_MAPS = (
    "PROTOBUF format only supports MAP types with STRING keys. See https://github.com/confluentinc/ksql/issues/6177."
)
MAP_REASONS = {
    "JSON": "JSON only supports MAP types with STRING keys",
    "JSON_SR": "JSON only supports MAP types with STRING keys",
    "AVRO": "Avro only supports MAPs with STRING keys",
    "PROTOBUF": _PROTOBUF_MAPS,
    "PROTOBUF_NOSR": _PROTOBUF_MAPS,
}


def rule(name: str) -> Rule:
    found = RULES.get(name)
    if found is None:
        raise SqlError(f"Unknown format: {name}")
    return found


def key_features(format_name: str, columns: Columns) -> frozenset[str]:
    """Return how a key is written: a single column alone, where the format leaves a choice."""
    known = rule(format_name)
    both = known.wraps and known.unwraps
    return frozenset({"UNWRAP_SINGLES"}) if both and len(columns) == 1 else frozenset()


def value_features(format_name: str, columns: Columns, wrap: bool | None, default: bool) -> frozenset[str]:
    """Return how a value is written; `wrap` is WRAP_SINGLE_VALUE if it is given."""
    known = rule(format_name)
    if wrap is not None:
        if not (known.wraps and known.unwraps) and wrap != known.wraps:
            raise SqlError(f"Format '{format_name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(wrap).lower()}'.")
        if len(columns) != 1:
            raise SqlError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
        if not (known.wraps and known.unwraps):
            return frozenset()
        return frozenset({"WRAP_SINGLES" if wrap else "UNWRAP_SINGLES"})
    if not default and len(columns) == 1 and known.wraps and known.unwraps:
        return frozenset({"UNWRAP_SINGLES"})
    return frozenset()


def check_properties(format_: Format) -> None:
    known = rule(format_.name)
    strange = sorted(name for name, _ in format_.properties if name not in known.properties)
    if strange:
        raise SqlError(f"{format_.name} does not support the following configs: [{', '.join(strange)}]")


def check(format_: Format, columns: Columns, key: bool) -> None:
    """Refuse columns that a format cannot hold."""
    reason = refusal(format_.name, columns, key)
    if reason is None:
        return
    side = "Key" if key else "Value"
    listed = quoted_columns(columns, " KEY" if key else "")
    features = ", ".join(sorted(format_.features))
    raise SqlError(
        f"{side} format does not support schema.\nformat: {format_.name}\n"
        f"schema: Persistence{{columns=[{listed}], features=[{features}]}}\nreason: {reason}"
    )


def refusal(name: str, columns: Columns, key: bool) -> str | None:
    """Say why a format cannot hold these columns; None if it can."""
    known = rule(name)
    suffix = " KEY" if key else ""
    if name == "NONE":
        if columns:
            listed = quoted_columns(columns, suffix)
            return f"The 'NONE' format can only be used when no columns are defined. Got: [{listed}]"
        return None
    if known.single and len(columns) > 1:
        return f"The '{name}' format only supports a single field. Got: [{quoted_columns(columns, suffix)}]"
    for column, kind in columns:
        if base(kind) in known.refused:
            return f"The '{name}' format does not support type '{base(kind)}', column: {quoted(column)}"
        if name in MAP_REASONS and _has_other_map_keys(kind):
            return MAP_REASONS[name]
    if name == "AVRO":
        return _avro_reason(columns)
    return None


def _has_other_map_keys(kind: Type) -> bool:
    match kind:
        case MapType():
            return kind.key != Primitive("STRING") or _has_other_map_keys(kind.value)
        case ArrayType():
            return _has_other_map_keys(kind.item)
        case StructType():
            return any(_has_other_map_keys(f.type) for f in kind.fields)
        case _:
            return False


def _avro_reason(columns: Columns) -> str | None:
    for column, kind in columns:
        if not (column[:1].isalpha() or column[:1] == "_"):
            return f"Schema is not compatible with Avro: Illegal initial character: {column}"
        bad = next((c for c in column if not (c.isalnum() or c == "_")), None)
        if bad is not None:
            return f"Schema is not compatible with Avro: Illegal character in: {column}"
        reason = _avro_reason(_fields(kind))
        if reason is not None:
            return reason
    return None


def _fields(kind: Type) -> Columns:
    """Return the fields of the structs in a type."""
    match kind:
        case ArrayType():
            return _fields(kind.item)
        case MapType():
            return _fields(kind.value)
        case StructType():
            return tuple((field.name, field.type) for field in kind.fields)
        case _:
            return ()


def check_keys(columns: Columns) -> None:
    """Refuse keys with maps in them."""
    for column, kind in columns:
        if _has_map(kind):
            raise SqlError(
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected "
                f"behavior due to inconsistent serialization. Key column name: {quoted(column)}. Column type: "
                f"{type_text(kind, quoted)}. See https://github.com/confluentinc/ksql/issues/6621 for more."
            )


def _has_map(kind: Type) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _has_map(kind.item)
        case StructType():
            return any(_has_map(f.type) for f in kind.fields)
        case _:
            return False

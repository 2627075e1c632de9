"""Schemas of Connect as schemas of Avro and back, by the mapping that Confluent's AvroConverter established.

What Avro cannot say stands in properties `connect.*`: the name, version and doc of a schema, its parameters, and the
narrower integers. A union of several types is a struct with one optional field for each; an enum is a string whose
parameters list the symbols; a map whose keys are not strings is an array of entries.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.connect import data
from moldau.connect.data import Field, Schema, Struct, Type
from moldau.connect.errors import DataError
from moldau.serdes.schemas.avro import Array, Map, Named, Primitive, Union
from moldau.serdes.schemas.avro import Schema as Node

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
UNION = f"{NAMESPACE}.Union"
ENUM = f"{NAMESPACE}.Enum"
ENTRY = "MapEntry"
FIXED_SIZE = "connect.fixed.size"
PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
KINDS = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
TYPES = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}
LOGICAL = {data.DATE: "date", data.TIME: "time-millis", data.TIMESTAMP: "timestamp-millis"}
LOGICAL_NAMES = {(kind, logical): name for name, logical in LOGICAL.items() for kind in ("int", "long")}


@dataclass(slots=True)
class AvroSchemas:
    """Makes one Avro schema: it knows which names are defined already."""

    metadata: bool = True
    enhanced: bool = False
    defined: dict[str, Any] = field(default_factory=dict)
    unnamed: int = 0

    def of(self, schema: Schema) -> Any:
        """Return the Avro schema as JSON; an optional one is a union with null."""
        if schema.name == UNION and schema.type is Type.STRUCT:
            made = [self.of(each.schema.but(optional=False)) for each in schema.fields]
            return ["null", *made] if schema.optional else made
        made = self._base(schema)
        if not schema.optional:
            return made
        return [made, "null"] if schema.default is not None else ["null", made]

    def _base(self, schema: Schema) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        if schema.type is Type.ARRAY:
            made: dict[str, Any] = {"type": "array", "items": self.of(_known(schema.value_schema))}
        elif schema.type is Type.MAP:
            made = self._map(schema)
        else:
            made = self._primitive(schema)
        made |= self._properties(schema)
        return made["type"] if made.keys() == {"type"} and isinstance(made["type"], str) else made

    def _primitive(self, schema: Schema) -> dict[str, Any]:
        parameters = schema.parameters or {}
        if self.enhanced and schema.type is Type.STRING and ENUM in parameters:
            name, namespace = _split(parameters[ENUM])
            symbols = [key[len(ENUM) + 1 :] for key in parameters if key.startswith(ENUM + ".")]
            return {"type": "enum", "name": name, "symbols": symbols} | namespace
        if schema.type is Type.BYTES and FIXED_SIZE in parameters:
            name, namespace = _split(schema.name or "")
            return {"type": "fixed", "name": name, "size": int(parameters[FIXED_SIZE])} | namespace
        made: dict[str, Any] = {"type": KINDS[schema.type]}
        if schema.name in LOGICAL:
            made["logicalType"] = LOGICAL[schema.name]
        elif schema.name == data.DECIMAL:
            precision = int(parameters.get(PRECISION, DEFAULT_PRECISION))
            made |= {"scale": data.scale(schema), "precision": precision, "logicalType": "decimal"}
        if self.metadata and schema.type in (Type.INT8, Type.INT16):
            made["connect.type"] = schema.type.value
        return made

    def _map(self, schema: Schema) -> dict[str, Any]:
        keys, values = _known(schema.key_schema), _known(schema.value_schema)
        if keys.type is Type.STRING and not keys.optional:
            return {"type": "map", "values": self.of(values)}
        entry = data.struct({"key": keys, "value": values}, name=f"{NAMESPACE}.{ENTRY}")
        made = self._record(entry)
        if isinstance(made, dict):
            made["connect.internal.type"] = ENTRY
            made.pop("connect.name", None)
        return {"type": "array", "items": made}

    def _record(self, schema: Schema) -> Any:
        full = schema.name
        if full is None:
            self.unnamed += 1
            full = f"{NAMESPACE}.{DEFAULT_NAME}{self.unnamed if self.unnamed > 1 else ''}"
        if full in self.defined:
            if self.defined[full] != schema:
                raise DataError(f"Avro cannot have two different records of the name {full}")
            return full
        self.defined[full] = schema
        name, namespace = _split(full)
        fields = [self._field(each) for each in schema.fields]
        return {"type": "record", "name": name} | namespace | {"fields": fields} | self._properties(schema)

    def _field(self, place: Field) -> dict[str, Any]:
        if not _NAME.fullmatch(place.name):
            raise DataError(f"Avro does not allow the name {place.name} for a field")
        made: dict[str, Any] = {"name": place.name, "type": self.of(place.schema)}
        if place.schema.doc is not None:
            made["doc"] = place.schema.doc
        if place.schema.default is not None:
            made["default"] = default_json(place.schema, place.schema.default)
        elif place.schema.optional:
            made["default"] = None
        return made

    def _properties(self, schema: Schema) -> dict[str, Any]:
        if not self.metadata:
            return {}
        found: dict[str, Any] = {}
        if schema.doc is not None:
            found["connect.doc"] = schema.doc
        if schema.version is not None:
            found["connect.version"] = schema.version
        if schema.parameters is not None:
            found["connect.parameters"] = dict(schema.parameters)
        if schema.default is not None:
            found["connect.default"] = default_json(schema, schema.default)
        if schema.name is not None:
            found["connect.name"] = schema.name
        return found


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Avro needs the schema of an array's or a map's values")
    return schema


def _split(full: str) -> tuple[str, dict[str, str]]:
    namespace, _, name = full.rpartition(".")
    if not all(_NAME.fullmatch(part) for part in full.split(".")):
        raise DataError(f"Avro does not allow the name {full}")
    return name, {"namespace": namespace} if namespace else {}


def default_json(schema: Schema, value: Any) -> Any:
    """Write a default as Avro does in JSON: bytes are a string of the characters 0 to 255."""
    if value is None:
        return None
    if schema.name in data.LOGICAL:
        value = data.encode_logical(schema, value)
    match value:
        case bytes():
            return value.decode("latin-1")
        case Struct():
            return {place.name: default_json(place.schema, value.get(place.name)) for place, _ in value}
        case list() | tuple():
            return [default_json(_known(schema.value_schema), each) for each in value]
        case dict():
            return {key: default_json(_known(schema.value_schema), each) for key, each in value.items()}
        case _:
            return value


def of_default(schema: Schema, found: Any) -> Any:
    """Read a default back."""
    if found is None:
        return None
    match schema.type:
        case Type.BYTES:
            value: Any = found.encode("latin-1") if isinstance(found, str) else base64.b64decode(found)
        case Type.STRUCT:
            fields = {each.name: of_default(each.schema, found.get(each.name)) for each in schema.fields}
            return Struct.of(schema, {name: each for name, each in fields.items() if each is not None})
        case Type.ARRAY:
            return [of_default(_known(schema.value_schema), each) for each in found]
        case Type.MAP:
            return {key: of_default(_known(schema.value_schema), each) for key, each in found.items()}
        case Type.FLOAT32 | Type.FLOAT64:
            value = float(found)
        case _:
            value = found
    return data.decode_logical(schema, value) if schema.name in data.LOGICAL else value


@dataclass(slots=True)
class ConnectSchemas:
    """Reads Avro schemas as Connect's."""

    metadata: bool = True
    enhanced: bool = False
    open: set[int] = field(default_factory=set)

    def of(self, node: Node, default: Any = None, doc: str | None = None) -> Schema:
        """Return the schema of a node; `default` and `doc` are those of the field that it is the type of."""
        if isinstance(node, Union):
            return self._union(node, default, doc)
        schema = self._node(node)
        props: Mapping[str, Any] = getattr(node, "props", {})
        if self.metadata:
            schema = schema.but(
                name=props.get("connect.name", schema.name),
                version=props.get("connect.version", schema.version),
                doc=props.get("connect.doc", doc),
                parameters=self._parameters(schema, props),
            )
        found = props.get("connect.default", default)
        return schema if found is None else schema.but(default=of_default(schema, found))

    def _parameters(self, schema: Schema, props: Mapping[str, Any]) -> Mapping[str, str] | None:
        given = props.get("connect.parameters")
        return {**(schema.parameters or {}), **given} if given is not None else schema.parameters

    def _union(self, node: Union, default: Any, doc: str | None) -> Schema:
        branches = [each for each in node.branches if each.kind != "null"]
        optional = len(branches) < len(node.branches)
        if len(branches) == 1:
            return self.of(branches[0], default, doc).but(optional=optional)
        fields = {self.branch_name(each): self.of(each).but(optional=True) for each in branches}
        return data.struct(fields, name=UNION, optional=optional, doc=doc)

    def branch_name(self, node: Node) -> str:
        if isinstance(node, Named):
            return node.full_name if self.enhanced else node.name
        return node.kind

    def _node(self, node: Node) -> Schema:
        match node:
            case Primitive():
                return self._primitive(node)
            case Array():
                if isinstance(node.items, Named) and node.items.props.get("connect.internal.type") == ENTRY:
                    keys, values = (self.of(each.type) for each in node.items.fields)
                    return data.map_of(keys, values)
                return data.array(self.of(node.items))
            case Map():
                return data.map_of(data.STRING, self.of(node.values))
            case Named(kind="enum"):
                symbols = {f"{ENUM}.{symbol}": symbol for symbol in node.symbols}
                return data.STRING.but(parameters={ENUM: node.full_name, **symbols} if self.metadata else None)
            case Named(kind="fixed"):
                if node.props.get("logicalType") == "decimal":
                    return data.decimal(node.props.get("scale", 0))
                return data.BYTES.but(name=node.full_name, parameters={FIXED_SIZE: str(node.size)})
            case Named():
                return self._struct(node)
            case _:
                raise DataError(f"Connect has no type for {node.kind} of Avro")

    def _primitive(self, node: Primitive) -> Schema:
        logical = node.props.get("logicalType")
        if node.kind == "bytes" and logical == "decimal":
            precision = node.props.get("precision", DEFAULT_PRECISION)
            made = data.decimal(node.props.get("scale", 0))
            own = {PRECISION: str(precision)} if precision != DEFAULT_PRECISION else {}
            return made.but(parameters={**(made.parameters or {}), **own})
        name = LOGICAL_NAMES.get((node.kind, logical or ""))
        if name is not None:
            return Schema(TYPES[node.kind], name=name, version=1)
        if self.metadata and "connect.type" in node.props:
            return Schema(Type(node.props["connect.type"]))
        if node.kind not in TYPES:
            raise DataError(f"Connect has no type for {node.kind} of Avro")
        return Schema(TYPES[node.kind])

    def _struct(self, node: Named) -> Schema:
        if id(node) in self.open:
            raise DataError(f"The record {node.full_name} contains itself, which a schema of Connect cannot")
        self.open.add(id(node))
        fields = {
            each.name: self.of(each.type, each.default if each.has_default else None, each.doc) for each in node.fields
        }
        self.open.discard(id(node))
        default = node.namespace == NAMESPACE and node.name.startswith(DEFAULT_NAME)
        return data.struct(fields, name=None if default else node.full_name)

"""Tags in schemas: words such as PII on records and fields, which rules look for.

Avro and JSON Schema keep them in the property confluent:tags, Protobuf in the options confluent.message_meta and
confluent.field_meta. An entity is found by its path: the full name of an Avro record and its field, the names of
messages and fields in Protobuf, and steps through the document in JSON Schema (object.address.object.street).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from . import avro_text, json_text, proto_text
from .avro import Named, parse_avro, walk
from .parsed import UNLIMITED, Entity, Parsed, SchemaError
from .proto import File, Literal, Message, Option, Value
from .proto_normal import as_list
from .proto_parser import parse_proto
from .tags_json import TAGS, json_entities

RECORD, FIELD = "sr_record", "sr_field"
METAS = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
Tags = Mapping[Entity, Sequence[str]]


def tags_of(parsed: Parsed) -> dict[Entity, list[str]]:
    """Return the tags of all records and fields that have some."""
    return {entity: tags for entity, tags in entities_of(parsed).items() if tags}


def entities_of(parsed: Parsed) -> dict[Entity, list[str]]:
    """Return all records and fields, each with its tags."""
    if parsed.type == "PROTOBUF":
        return {entity: meta_tags(entity, options) for entity, options in proto_entities(parsed.raw)}
    places = avro_entities(parsed) if parsed.type == "AVRO" else json_entities(parsed.raw)
    return {entity: tags_in(props) for entity, props in places}


def write_tags(parsed: Parsed, add: Tags, remove: Tags) -> str:
    """Return the text of a schema with tags added and then others removed."""
    return WRITERS[parsed.type](parsed, add, remove)


def tags_in(props: Mapping[str, object]) -> list[str]:
    found = props.get(TAGS)
    return [str(tag) for tag in found] if isinstance(found, list) else []


def changed(old: Sequence[str], entity: Entity, add: Tags, remove: Tags) -> list[str]:
    gone = remove.get(entity, ())
    return [tag for tag in dict.fromkeys((*old, *add.get(entity, ()))) if tag not in gone]


def places_of(places: Iterator[tuple[Entity, dict[str, object]]], add: Tags, remove: Tags) -> None:
    """Change the properties of each entity that is named."""
    found = dict(places)
    for entity in dict.fromkeys((*add, *remove)):
        if entity not in found:
            raise missing(entity)
        props = found[entity]
        tags = changed(tags_in(props), entity, add, remove)
        props.pop(TAGS, None) if not tags else props.update({TAGS: tags})


def missing(entity: Entity) -> SchemaError:
    return SchemaError(f"there is no {entity.type.removeprefix('sr_')} {entity.path!r} in the schema")


def avro_entities(parsed: Parsed) -> Iterator[tuple[Entity, dict[str, object]]]:
    foreign = parse_avro(parsed.text, parsed.resolved, UNLIMITED, new=False)[1]
    for node in walk([parsed.raw]):
        if isinstance(node, Named) and node.is_record and node.full_name not in foreign:
            yield Entity(node.full_name, RECORD), node.props
            for entry in node.fields:
                yield Entity(f"{node.full_name}.{entry.name}", FIELD), entry.props


def write_avro(parsed: Parsed, add: Tags, remove: Tags) -> str:
    schema, foreign = parse_avro(parsed.text, parsed.resolved, UNLIMITED, new=False)
    copy = replace(parsed, raw=schema)
    places_of(avro_entities(copy), add, remove)
    return avro_text.canonical(schema, foreign)


def write_json(parsed: Parsed, add: Tags, remove: Tags) -> str:
    document = json_text.loads(parsed.text, UNLIMITED, exact=True)
    places_of(json_entities(document), add, remove)
    return json_text.dumps(document)


def proto_entities(file: File) -> Iterator[tuple[Entity, list[Option]]]:
    for path, message in proto_messages(file.types, ()):
        yield Entity(".".join(path), RECORD), message.options
        for entry in message.every_field():
            yield Entity(".".join((*path, entry.name)), FIELD), entry.options


def proto_messages(nodes: Sequence[object], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Message]]:
    for node in nodes:
        if isinstance(node, Message):
            yield (*path, node.name), node
            yield from proto_messages(node.types, (*path, node.name))


def meta_tags(entity: Entity, options: Sequence[Option]) -> list[str]:
    found: list[str] = []
    for option in options:
        meta = option.nested_value()
        if option.is_extension and option.name == METAS[entity.type] and isinstance(meta, dict):
            found += [item.text for item in as_list(meta.get("tags", [])) if isinstance(item, Literal)]
    return list(dict.fromkeys(found))


def write_proto(parsed: Parsed, add: Tags, remove: Tags) -> str:
    file = parse_proto(parsed.text, UNLIMITED)
    found = dict(proto_entities(file))
    for entity in dict.fromkeys((*add, *remove)):
        if entity not in found:
            raise missing(entity)
        set_meta_tags(found[entity], METAS[entity.type], changed(meta_tags(entity, found[entity]), entity, add, remove))
    return proto_text.canonical(file)


def set_meta_tags(options: list[Option], name: str, tags: Sequence[str]) -> None:
    """Replace all settings of the meta option by one with these tags."""
    meta: dict[str, Value] = {}
    for option in [option for option in options if option.is_extension and option.name == name]:
        value = option.nested_value()
        meta |= value if isinstance(value, dict) else {}
        options.remove(option)
    meta.pop("tags", None)
    if tags:
        meta["tags"] = [Literal(tag, is_string=True) for tag in tags]
    if meta:
        options.append(Option(name, meta, is_extension=True))


WRITERS: dict[str, Callable[[Parsed, Tags, Tags], str]] = {
    "AVRO": write_avro,
    "JSON": write_json,
    "PROTOBUF": write_proto,
}

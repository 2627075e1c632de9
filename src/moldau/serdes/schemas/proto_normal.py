"""The normal form of a Protobuf file: names in full, what has no order by number or name, options of one extension
together. The order of messages and enums stays: message indexes count on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from . import proto as p
from .proto_scope import Scope
from .proto_text import all_options

Path = tuple[str, ...]
R = TypeVar("R", bound=p.Range | str)


def normal_file(file: p.File, scope: Scope) -> p.File:
    return p.File(
        None if file.syntax == "proto2" else file.syntax,
        file.package,
        sorted(set(file.imports)),
        normal_options(file.options, scope, ()),
        normal_types(file.types, scope, ()),
        normal_extends(file.extends, scope, ()),
        [normal_service(service, scope) for service in file.services],
    )


def normal_types(nodes: Iterable[p.Message | p.Enum], scope: Scope, path: Path) -> list[p.Message | p.Enum]:
    """Leave out the messages behind maps: the fields say map again."""
    return [
        normal_enum(node, scope, path) if isinstance(node, p.Enum) else normal_message(node, scope, path)
        for node in nodes
        if isinstance(node, p.Enum) or not node.is_map_entry
    ]


def normal_message(message: p.Message, scope: Scope, path: Path) -> p.Message:
    inside = (*path, message.name)
    fields = [normal_field(entry, scope, inside) for entry in message.fields]
    oneofs = [normal_oneof(oneof, scope, inside) for oneof in message.oneofs if oneof.fields]
    return p.Message(
        message.name,
        sorted(fields, key=lambda entry: entry.number),
        sorted(oneofs, key=lambda oneof: oneof.fields[0].number),
        normal_reserved(message.reserved),
        normal_extensions(message.extensions, scope, inside),
        normal_extends(message.extends, scope, inside),
        normal_types(message.types, scope, inside),
        normal_options(message.options, scope, inside),
    )


def normal_field(entry: p.Field, scope: Scope, path: Path) -> p.Field:
    made = replace(entry, options=normal_options(all_options(entry), scope, path), default=None, json_name=None)
    if entry.group:
        made.group = normal_message(entry.group, scope, path)
        return made
    made.type = normal_type(entry, scope, path)
    if made.map_types:
        made.label = None
    return made


def normal_type(entry: p.Field, scope: Scope, path: Path) -> str:
    pair = entry.map_types
    if pair is None and entry.type not in p.SCALARS:
        full = scope.resolve(entry.type, path)
        pair = scope.types[full[1:]].map_types
        if pair is None:
            return full
        path = (*path, full.rpartition(".")[2])
    if pair is None:
        return entry.type
    key, value = pair
    found = None if value in p.SCALARS else scope.find(value, path)
    return f"map<{key}, {'.' + found if found else value}>"


def normal_oneof(oneof: p.Oneof, scope: Scope, path: Path) -> p.Oneof:
    fields = sorted((normal_field(entry, scope, path) for entry in oneof.fields), key=lambda entry: entry.number)
    return p.Oneof(oneof.name, fields, normal_options(oneof.options, scope, path))


def normal_enum(enum: p.Enum, scope: Scope, path: Path) -> p.Enum:
    inside = (*path, enum.name)
    constants = [p.Constant(one.name, one.number, normal_options(one.options, scope, inside)) for one in enum.constants]
    return p.Enum(
        enum.name,
        sorted(constants, key=lambda one: (one.number, one.name)),
        normal_reserved(enum.reserved),
        normal_options(enum.options, scope, inside),
    )


def normal_reserved(given: Iterable[p.Reserved]) -> list[p.Reserved]:
    single = [p.Reserved([normal_range(value)], reserved.quoted) for reserved in given for value in reserved.values]
    return sorted(single, key=lambda reserved: order_of(reserved.values[0]))


def normal_range(value: R) -> R:
    """Write a range of one number as that number; a name stays."""
    return replace(value, alone=value.first == value.last) if isinstance(value, p.Range) else value


def order_of(value: p.Range | str) -> tuple[int, str]:
    return (value.first, "") if isinstance(value, p.Range) else (1 << 31, value)


def normal_extensions(given: Iterable[p.Extensions], scope: Scope, path: Path) -> list[p.Extensions]:
    single = [
        p.Extensions([normal_range(part)], normal_options(one.options, scope, path))
        for one in given
        for part in one.ranges
    ]
    return sorted(single, key=lambda extensions: extensions.ranges[0].first)


def normal_extends(given: Iterable[p.Extend], scope: Scope, path: Path) -> list[p.Extend]:
    found: dict[str, p.Extend] = {}
    for extend in given:
        name = scope.resolve(extend.name, path)
        made = (normal_field(entry, scope, path) for entry in extend.fields)
        found.setdefault(name, p.Extend(name)).fields.extend(made)
    for extend in found.values():
        extend.fields.sort(key=lambda entry: entry.number)
    return list(found.values())


def normal_service(service: p.Service, scope: Scope) -> p.Service:
    methods = [
        replace(
            rpc,
            request=scope.resolve(rpc.request, ()),
            response=scope.resolve(rpc.response, ()),
            options=normal_options(rpc.options, scope, ()),
        )
        for rpc in service.methods
    ]
    return p.Service(service.name, methods, normal_options(service.options, scope, ()))


def normal_options(options: Iterable[p.Option], scope: Scope, path: Path) -> list[p.Option]:
    """Sort options by name; several settings of one extension that is not repeated become one."""
    found: dict[str, list[p.Option]] = {}
    for option in sorted((qualified(option, scope, path) for option in options), key=lambda option: option.name):
        found.setdefault(option.name, []).append(option)
    made: list[p.Option] = []
    for name, same in found.items():
        entry, inside = scope.extensions.get(name, (None, ()))
        if entry and entry.label != "repeated" and same[0].is_extension:
            value = same[0].value
            for option in same[1:]:
                value = merged(value, option.value, entry, scope, inside)
            same = [replace(same[0], value=value)]
        made += [replace(option, value=normal_value(option.value, scope, path)) for option in same]
    return made


def qualified(option: p.Option, scope: Scope, path: Path) -> p.Option:
    """Give an extension its full name, and turn the path after it into a message."""
    full = scope.find_extension(option.name, path) if option.is_extension else None
    if full is None:
        return option
    return p.Option(full, option.nested_value(), is_extension=True)


def merged(old: p.Value, new: p.Value, entry: p.Field, scope: Scope, path: Path) -> p.Value:
    """Merge messages field by field; of anything else the later value counts."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    found: p.Aggregate = dict(old)
    owner = scope.entry(entry.type, path)
    node = owner.node if owner else None
    fields = {inner.name: inner for inner in node.every_field()} if isinstance(node, p.Message) else {}
    for key, value in new.items():
        if key not in found:
            found[key] = value
        elif key in fields and fields[key].label != "repeated" and not fields[key].map_types:
            inside = tuple(owner.local_name.split(".")) if owner else ()
            found[key] = merged(found[key], value, fields[key], scope.within(owner.package if owner else ""), inside)
        else:
            found[key] = once([*as_list(found[key]), *as_list(value)])
    return found


def as_list(value: p.Value) -> list[p.Value]:
    return value if isinstance(value, list) else [value]


def once(values: list[p.Value]) -> list[p.Value]:
    return [value for position, value in enumerate(values) if value not in values[:position]]


def normal_value(value: p.Value, scope: Scope, path: Path) -> p.Value:
    match value:
        case p.Literal():
            return value if value.is_string else p.Literal(normal_number(value.text))
        case dict():
            kept = ((key, item) for key, item in value.items() if item != [])
            named = {normal_key(key, scope, path): normal_value(item, scope, path) for key, item in kept}
            return {key: unwrapped(named[key]) for key in sorted(named)}
    return [unwrapped(normal_value(item, scope, path)) for item in value]


def unwrapped(value: p.Value) -> p.Value:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def normal_key(key: str, scope: Scope, path: Path) -> str:
    full = scope.find_extension(key[1:-1], path) if key.startswith("[") else None
    return f"[{full}]" if full else key


def normal_number(text: str) -> str:
    """Write a number in decimal digits; any other word stays."""
    digits = text.lstrip("+-")
    if not digits[:1].isdigit() and not digits.startswith("."):
        return text
    sign = "-" if text.startswith("-") else ""
    try:
        if digits[:2].lower() == "0x" or digits.isdigit():
            return sign + str(int(digits, 8 if digits[0] == "0" and len(digits) > 1 and digits.isdigit() else 0))
        number = Decimal(digits.rstrip("fF"))
    except (ValueError, InvalidOperation):
        return text
    if abs(number.adjusted()) > 400:  # out of every range; written out it would be long
        return text
    return sign + format(number.normalize(), "f")

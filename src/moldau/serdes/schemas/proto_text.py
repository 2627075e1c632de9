"""Protobuf files as text, in the order and layout that Confluent's registry gives them.

Sections stand apart by an empty line; of types, messages come first. The normal form is made in `proto_normal`, which
changes the file so that it is written plainly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .proto import (
    MAX_NUMBER,
    Aggregate,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Literal,
    Message,
    Method,
    Oneof,
    Option,
    Range,
    Reserved,
    Service,
    Value,
)

NAMED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
ESCAPES = str.maketrans(
    {chr(code): f"\\{code:03o}" for code in (*range(32), 127)}
    | {chr(0xDC00 + code): f"\\{code:03o}" for code in range(128, 256)}
    | NAMED
    | {"\\": "\\\\", "'": "\\'", '"': '\\"'}
)


def canonical(file: File) -> str:
    sections = [
        [f'import {kind + " " if kind else ""}"{path}";' for kind, path in sorted(file.imports, key=import_order)],
        [line for option in file.options for line in option_statement(option)],
        types(file.types),
        [line for extend in file.extends for line in extend_lines(extend)],
        [line for service in file.services for line in service_lines(service)],
    ]
    return "\n".join([*first_lines(file), *(line for part in sections if part for line in ("", *part)), ""])


def without_extensions(file: File) -> File:
    """The file without extensions, and without options that are extensions, except those of Confluent."""
    return replace(
        file,
        options=plain_options(file.options),
        types=[without(node) for node in file.types],
        extends=[],
        services=[
            replace(
                service,
                options=plain_options(service.options),
                methods=[replace(rpc, options=plain_options(rpc.options)) for rpc in service.methods],
            )
            for service in file.services
        ],
    )


def without(node: Message | Enum) -> Message | Enum:
    if isinstance(node, Enum):
        constants = [replace(constant, options=plain_options(constant.options)) for constant in node.constants]
        return replace(node, options=plain_options(node.options), constants=constants)
    return replace(
        node,
        options=plain_options(node.options),
        fields=[replace(entry, options=plain_options(entry.options)) for entry in node.fields],
        oneofs=[
            replace(
                oneof,
                options=plain_options(oneof.options),
                fields=[replace(entry, options=plain_options(entry.options)) for entry in oneof.fields],
            )
            for oneof in node.oneofs
        ],
        extensions=[],
        extends=[],
        types=[without(inner) for inner in node.types],
    )


def plain_options(options: list[Option]) -> list[Option]:
    return [option for option in options if not option.is_extension or option.name.startswith("confluent")]


def first_lines(file: File) -> list[str]:
    lines = [f'{"edition" if file.is_edition else "syntax"} = "{file.syntax}";'] if file.syntax else []
    return [*lines, f"package {file.package};"] if file.package else lines


def import_order(entry: tuple[str, str]) -> int:
    return ("", "public", "weak", "option").index(entry[0])


def types(nodes: Iterable[Message | Enum]) -> list[str]:
    ordered = sorted(nodes, key=lambda node: isinstance(node, Enum))
    return [line for node in ordered for line in (enum_lines(node) if isinstance(node, Enum) else message_lines(node))]


def message_lines(message: Message) -> list[str]:
    return block(f"message {message.name}", message_sections(message))


def message_sections(message: Message) -> list[list[str]]:
    return [
        [reserved_line(reserved) for reserved in message.reserved],
        [line for option in message.options for line in option_statement(option)],
        [line for field in message.fields if not field.group for line in field_lines(field)],
        [line for oneof in message.oneofs for line in oneof_lines(oneof)],
        [line for field in message.fields if field.group for line in group_lines(field)],
        [line for extensions in message.extensions for line in extensions_lines(extensions)],
        [line for extend in message.extends for line in extend_lines(extend)],
        types(message.types),
    ]


def block(head: str, sections: Iterable[Sequence[str]]) -> list[str]:
    """Braces around sections with an empty line between; nothing inside is written on one line."""
    inner: list[str] = []
    for section in sections:
        if section:
            inner += [*([""] if inner else []), *indented(section)]
    return [f"{head} {{", *inner, "}"] if inner else [f"{head} {{}}"]


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def field_lines(field: Field) -> list[str]:
    label = f"{field.label} " if field.label else ""
    return with_options(f"{label}{field.type} {field.name} = {field.number}", all_options(field))


def all_options(field: Field) -> list[Option]:
    """The options of a field, its default and its name in JSON."""
    options = list(field.options)
    if field.default is not None:
        options.append(Option("default", Literal(field.default, field.type in ("string", "bytes"))))
    if field.json_name is not None:
        options.append(Option("json_name", Literal(field.json_name, is_string=True)))
    return options


def group_lines(field: Field) -> list[str]:
    assert field.group is not None
    label = f"{field.label} " if field.label else ""
    head = f"{label}group {field.group.name} = {field.number}"
    *before, last = with_options(head, all_options(field))
    return [*before, *block(last.removesuffix(";"), message_sections(field.group))]


def oneof_lines(oneof: Oneof) -> list[str]:
    sections = [
        [line for option in oneof.options for line in option_statement(option)],
        [line for field in oneof.fields if not field.group for line in field_lines(field)],
        [line for field in oneof.fields if field.group for line in group_lines(field)],
    ]
    return block(f"oneof {oneof.name}", sections)


def enum_lines(enum: Enum) -> list[str]:
    """An enum's options and constants stand together, whatever is reserved before them."""
    lines = [reserved_line(reserved) for reserved in enum.reserved]
    lines += [line for option in enum.options for line in option_statement(option)]
    lines += [line for constant in enum.constants for line in constant_lines(constant)]
    return block(f"enum {enum.name}", [lines])


def constant_lines(constant: Constant) -> list[str]:
    return with_options(f"{constant.name} = {constant.number}", constant.options)


def extend_lines(extend: Extend) -> list[str]:
    fields = [line for field in extend.fields for line in (group_lines(field) if field.group else field_lines(field))]
    return block(f"extend {extend.name}", [fields])


def reserved_line(reserved: Reserved) -> str:
    quote = '"' if reserved.quoted else ""
    names = (f"{quote}{value}{quote}" if isinstance(value, str) else range_text(value) for value in reserved.values)
    return f"reserved {', '.join(names)};"


def range_text(value: Range) -> str:
    if value.alone:
        return str(value.first)
    return f"{value.first} to {value.last if value.last < MAX_NUMBER else 'max'}"


def extensions_lines(extensions: Extensions) -> list[str]:
    return with_options(f"extensions {', '.join(map(range_text, extensions.ranges))}", extensions.options)


def service_lines(service: Service) -> list[str]:
    options = [line for option in service.options for line in option_statement(option)]
    return block(f"service {service.name}", [options, [line for rpc in service.methods for line in method_lines(rpc)]])


def method_lines(rpc: Method) -> list[str]:
    request = f"{'stream ' if rpc.request_streams else ''}{rpc.request}"
    response = f"{'stream ' if rpc.response_streams else ''}{rpc.response}"
    head = f"rpc {rpc.name} ({request}) returns ({response})"
    options = [line for option in rpc.options for line in option_statement(option)]
    return [f"{head} {{", *indented(options), "};"] if options else [f"{head};"]


def option_statement(option: Option) -> list[str]:
    first, *rest = option_text(option).split("\n")
    return ended([f"option {first}", *rest], ";")


def with_options(head: str, options: Sequence[Option]) -> list[str]:
    if not options:
        return [f"{head};"]
    return f"{head} {bracketed([option_text(option) for option in options])};".split("\n")


def bracketed(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"[{texts[0]}]"
    return "[\n" + listed(texts) + "]"


def listed(texts: Sequence[str]) -> str:
    """Texts on lines of their own, set in, with commas between."""
    whole = ",\n".join(texts)
    return "".join(f"  {line}\n" for line in whole.split("\n")) if texts else ""


def ended(lines: list[str], end: str) -> list[str]:
    return [*lines[:-1], lines[-1] + end]


def option_text(option: Option) -> str:
    name = f"({option.name})" if option.is_extension else option.name
    value = (
        bracketed(list(map(value_text, option.value))) if isinstance(option.value, list) else value_text(option.value)
    )
    return f"{'.'.join((name, *option.path))} = {value}"


def value_text(value: Value) -> str:
    match value:
        case Literal():
            return f'"{value.text.translate(ESCAPES)}"' if value.is_string else value.text
        case dict():
            return aggregate_text(value)
    return "[\n" + listed([value_text(item) for item in value]) + "]"


def aggregate_text(value: Aggregate) -> str:
    return "{\n" + listed([f"{key}: {value_text(item)}" for key, item in value.items()]) + "}"

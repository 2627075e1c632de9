"""Protobuf files as text, in the order and layout that Confluent's registry gives them.

Sections stand apart by an empty line; of types, messages come first. The normal form is made in `proto_normal`, which
changes the file so that it is written plainly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from . import proto as p

NAMED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
ESCAPES = str.maketrans(
    {chr(code): f"\\{code:03o}" for code in (*range(32), 127)}
    | {chr(0xDC00 + code): f"\\{code:03o}" for code in range(128, 256)}
    | NAMED
    | {"\\": "\\\\", "'": "\\'", '"': '\\"'}
)
T = TypeVar("T")


def canonical(file: p.File) -> str:
    sections = [
        [f'import {kind + " " if kind else ""}"{path}";' for kind, path in sorted(file.imports, key=import_order)],
        lines(option_statement, file.options),
        types_lines(file.types),
        lines(extend_lines, file.extends),
        lines(service_lines, file.services),
    ]
    return "\n".join([*first_lines(file), *(line for part in sections if part for line in ("", *part)), ""])


def lines(write: Callable[[T], list[str]], nodes: Iterable[T]) -> list[str]:
    return [line for node in nodes for line in write(node)]


def without_extensions(node: Any) -> Any:
    """Copy a file, or a part of one, without extensions and options that are extensions, except those of Confluent."""
    kept: dict[str, Any] = {}
    for name, value in ((part.name, getattr(node, part.name)) for part in fields(node)):
        if name in ("extends", "extensions"):
            kept[name] = []
        elif name == "options":
            kept[name] = [one for one in value if not one.is_extension or one.name.startswith("confluent")]
        elif isinstance(value, list):
            kept[name] = [without_extensions(one) if is_dataclass(one) else one for one in value]
    return replace(node, **kept)


def first_lines(file: p.File) -> list[str]:
    syntax = [f'{"edition" if file.is_edition else "syntax"} = "{file.syntax}";'] if file.syntax else []
    return [*syntax, f"package {file.package};"] if file.package else syntax


def import_order(entry: tuple[str, str]) -> int:
    return ("", "public", "weak", "option").index(entry[0])


def types_lines(nodes: Iterable[p.Message | p.Enum]) -> list[str]:
    return lines(type_lines, sorted(nodes, key=lambda node: isinstance(node, p.Enum)))


def type_lines(node: p.Message | p.Enum) -> list[str]:
    if isinstance(node, p.Enum):
        return enum_lines(node)
    return block(f"message {node.name}", message_sections(node))


def message_sections(message: p.Message) -> list[list[str]]:
    return [
        [reserved_line(reserved) for reserved in message.reserved],
        lines(option_statement, message.options),
        lines(field_lines, (field for field in message.fields if not field.group)),
        lines(oneof_lines, message.oneofs),
        lines(field_lines, (field for field in message.fields if field.group)),
        lines(extensions_lines, message.extensions),
        lines(extend_lines, message.extends),
        types_lines(message.types),
    ]


def block(head: str, sections: Iterable[Sequence[str]]) -> list[str]:
    """Put braces around sections with an empty line between; an empty block is written on one line."""
    inner: list[str] = []
    for section in sections:
        if section:
            inner += [*([""] if inner else []), *indented(section)]
    return [f"{head} {{", *inner, "}"] if inner else [f"{head} {{}}"]


def indented(texts: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in texts]


def field_lines(field: p.Field) -> list[str]:
    """Write a field; a group has its body after it."""
    label = f"{field.label} " if field.label else ""
    what = f"group {field.group.name}" if field.group else f"{field.type} {field.name}"
    *before, last = with_options(f"{label}{what} = {field.number}", all_options(field))
    body = block(last.removesuffix(";"), message_sections(field.group)) if field.group else [last]
    return [*before, *body]


def all_options(field: p.Field) -> list[p.Option]:
    """Return the options of a field, its default and its name in JSON."""
    options = list(field.options)
    if field.default is not None:
        options.append(p.Option("default", p.Literal(field.default, field.type in ("string", "bytes"))))
    if field.json_name is not None:
        options.append(p.Option("json_name", p.Literal(field.json_name, is_string=True)))
    return options


def oneof_lines(oneof: p.Oneof) -> list[str]:
    sections = [
        lines(option_statement, oneof.options),
        lines(field_lines, (field for field in oneof.fields if not field.group)),
        lines(field_lines, (field for field in oneof.fields if field.group)),
    ]
    return block(f"oneof {oneof.name}", sections)


def enum_lines(enum: p.Enum) -> list[str]:
    """Write an enum. Its options and constants stand together, whatever is reserved before them."""
    reserved = [reserved_line(reserved) for reserved in enum.reserved]
    rest = lines(option_statement, enum.options) + lines(constant_lines, enum.constants)
    return block(f"enum {enum.name}", [reserved + rest])


def constant_lines(constant: p.Constant) -> list[str]:
    return with_options(f"{constant.name} = {constant.number}", constant.options)


def extend_lines(extend: p.Extend) -> list[str]:
    return block(f"extend {extend.name}", [lines(field_lines, extend.fields)])


def reserved_line(reserved: p.Reserved) -> str:
    quote = '"' if reserved.quoted else ""
    names = (f"{quote}{value}{quote}" if isinstance(value, str) else range_text(value) for value in reserved.values)
    return f"reserved {', '.join(names)};"


def range_text(value: p.Range) -> str:
    if value.alone:
        return str(value.first)
    return f"{value.first} to {value.last if value.last < p.MAX_NUMBER else 'max'}"


def extensions_lines(extensions: p.Extensions) -> list[str]:
    return with_options(f"extensions {', '.join(map(range_text, extensions.ranges))}", extensions.options)


def service_lines(service: p.Service) -> list[str]:
    sections = [lines(option_statement, service.options), lines(method_lines, service.methods)]
    return block(f"service {service.name}", sections)


def method_lines(rpc: p.Method) -> list[str]:
    request = f"{'stream ' if rpc.request_streams else ''}{rpc.request}"
    response = f"{'stream ' if rpc.response_streams else ''}{rpc.response}"
    head = f"rpc {rpc.name} ({request}) returns ({response})"
    options = lines(option_statement, rpc.options)
    return [f"{head} {{", *indented(options), "};"] if options else [f"{head};"]


def option_statement(option: p.Option) -> list[str]:
    return f"option {option_text(option)};".split("\n")


def with_options(head: str, options: Sequence[p.Option]) -> list[str]:
    if not options:
        return [f"{head};"]
    return f"{head} {bracketed([option_text(option) for option in options])};".split("\n")


def bracketed(texts: Sequence[str]) -> str:
    return f"[{texts[0]}]" if len(texts) == 1 else f"[\n{on_lines(texts)}]"


def on_lines(texts: Sequence[str]) -> str:
    """Set texts in, on lines of their own, with commas between."""
    whole = ",\n".join(texts)
    return "".join(f"  {line}\n" for line in whole.split("\n")) if texts else ""


def option_text(option: p.Option) -> str:
    name = f"({option.name})" if option.is_extension else option.name
    value = option.value
    text = bracketed(list(map(value_text, value))) if isinstance(value, list) else value_text(value)
    return f"{'.'.join((name, *option.path))} = {text}"


def value_text(value: p.Value) -> str:
    match value:
        case p.Literal():
            return f'"{value.text.translate(ESCAPES)}"' if value.is_string else value.text
        case dict():
            return f"{{\n{on_lines([f'{key}: {value_text(item)}' for key, item in value.items()])}}}"
    return f"[\n{on_lines([value_text(item) for item in value])}]"

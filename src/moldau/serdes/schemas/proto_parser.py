"""Read .proto texts: proto2, proto3 and editions. Each construct has a function, which starts after the keyword."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import proto as p
from .parsed import Limits, SchemaError
from .proto_lexer import Reader, tokens

LABELS = ("optional", "required", "repeated")
Parts = Mapping[str, tuple[str, Callable[[Reader], Any]]]  # keyword -> the owner's list, what reads a statement


def parse_proto(text: str, limits: Limits) -> p.File:
    return read_file(Reader(text, tokens(text, limits)))


def read_file(r: Reader) -> p.File:
    file = p.File()
    if r.peek().text in ("syntax", "edition") and r.peek(1).text == "=":
        file.syntax = read_syntax(r)
    while r.peek().kind:
        read_statement(r, file)
    return file


def read_syntax(r: Reader) -> str:
    keyword = r.next().text
    r.expect("=")
    given = r.string(f"the {keyword}")
    r.expect(";")
    if (given in ("proto2", "proto3")) != (keyword == "syntax") or not given:
        raise SchemaError(f"{keyword} {given!r} is not known")
    return given


def read_statement(r: Reader, file: p.File) -> None:
    pass_visibility(r)
    if r.accept("import"):
        kind = r.next().text if r.peek().text in ("public", "weak", "option") else ""
        file.imports.append((kind, r.string("a path")))
        r.expect(";")
    elif r.accept("package"):
        if file.package:
            raise SchemaError("the package is given twice")
        file.package = r.name("a package")
        r.expect(";")
    elif not r.accept(";") and not read_part(r, file, IN_FILE):
        r.fail("import, package, option, message, enum, extend or service")


def pass_visibility(r: Reader) -> None:
    if r.accept("export", "local") and r.peek().text not in ("message", "enum"):
        r.fail("message or enum")


def read_part(r: Reader, owner: Any, parts: Parts) -> bool:
    """Read a statement into its owner's list, if it begins with the keyword of one of the parts."""
    token = r.peek()
    if token.kind != "word" or token.text not in parts:
        return False
    r.position += 1
    into, read = parts[token.text]
    getattr(owner, into).append(read(r))
    return True


def read_message(r: Reader) -> p.Message:
    message = p.Message(r.word("the name of a message"))
    read_body(r, message)
    return message


def read_body(r: Reader, message: p.Message) -> None:
    """Read the members of a message. Keywords win: a field cannot have a type that is called like one."""
    for _ in r.statements():
        pass_visibility(r)
        if not read_part(r, message, IN_MESSAGE):
            message.fields.append(read_field(r))


def read_field(r: Reader, *, labelled: bool = True) -> p.Field:
    label = r.next().text if labelled and r.peek().text in LABELS else None
    if r.peek().text == "group" and r.peek(2).text == "=":
        return read_group(r, label)
    is_map = r.peek().text == "map" and r.peek(1).text == "<"
    kind = read_map_type(r) if is_map else r.name("a field")
    field = p.Field(r.word("the name of a field"), kind, 0, label)
    r.expect("=")
    field.number = r.integer("the number of a field")
    read_field_options(r, field)
    r.expect(";")
    return field


def read_group(r: Reader, label: str | None) -> p.Field:
    r.position += 1
    name = r.word("the name of a group")
    r.expect("=")
    field = p.Field(name.lower(), name, r.integer("the number of a group"), label, group=p.Message(name))
    read_field_options(r, field)
    assert field.group is not None
    read_body(r, field.group)
    return field


def read_map_type(r: Reader) -> str:
    r.position += 2
    key = r.word("the type of a map's keys")
    r.expect(",")
    value = r.name("the type of a map's values")
    r.expect(">")
    return f"map<{key}, {value}>"


def read_field_options(r: Reader, field: p.Field) -> None:
    """Read options in brackets; default and json_name are not options but part of the field."""
    for option in read_options(r):
        if option.name == "default" and isinstance(option.value, p.Literal):
            field.default = option.value.text
        elif option.name == "json_name" and isinstance(option.value, p.Literal):
            field.json_name = option.value.text
        else:
            field.options.append(option)


def read_oneof(r: Reader) -> p.Oneof:
    oneof = p.Oneof(r.word("the name of a oneof"))
    for _ in r.statements():
        if not read_part(r, oneof, OPTION):
            oneof.fields.append(read_field(r, labelled=False))
    return oneof


def read_enum(r: Reader) -> p.Enum:
    enum = p.Enum(r.word("the name of an enum"))
    for _ in r.statements():
        if r.peek(1).text == "=" or not read_part(r, enum, IN_ENUM):
            enum.constants.append(read_constant(r))
    return enum


def read_constant(r: Reader) -> p.Constant:
    name = r.word("a constant")
    r.expect("=")
    constant = p.Constant(name, r.integer("the number of a constant"), read_options(r))
    r.expect(";")
    return constant


def read_extend(r: Reader) -> p.Extend:
    extend = p.Extend(r.name("the message to extend"))
    for _ in r.statements():
        extend.fields.append(read_field(r))
    return extend


def read_reserved(r: Reader, largest: int) -> p.Reserved:
    reserved = p.Reserved([], quoted=r.peek().kind != "word")
    while not reserved.values or r.accept(","):
        if r.peek().kind == "string":
            reserved.values.append(r.string("a name"))
        elif r.peek().kind == "word":
            reserved.values.append(r.word("a name"))
        else:
            reserved.values.append(read_range(r, largest))
    r.expect(";")
    return reserved


def read_range(r: Reader, largest: int) -> p.Range:
    first = r.integer("a number")
    if not r.accept("to"):
        return p.Range(first, first, alone=True)
    return p.Range(first, largest if r.accept("max") else r.integer("a number or max"))


def read_extensions(r: Reader) -> p.Extensions:
    extensions = p.Extensions([read_range(r, p.MAX_NUMBER)])
    while r.accept(","):
        extensions.ranges.append(read_range(r, p.MAX_NUMBER))
    extensions.options = read_options(r)
    r.expect(";")
    return extensions


def read_service(r: Reader) -> p.Service:
    service = p.Service(r.word("the name of a service"))
    for _ in r.statements():
        if not read_part(r, service, IN_SERVICE):
            r.fail("option or rpc")
    return service


def read_method(r: Reader) -> p.Method:
    method = p.Method(r.word("the name of a method"), "", "")
    method.request_streams, method.request = read_parameter(r)
    r.expect("returns")
    method.response_streams, method.response = read_parameter(r)
    if r.peek().text != "{":
        r.expect(";")
        return method
    for _ in r.statements():
        if not read_part(r, method, OPTION):
            r.fail("option")
    r.accept(";")
    return method


def read_parameter(r: Reader) -> tuple[bool, str]:
    r.expect("(")
    streams = r.peek().text == "stream" and r.peek(1).text != ")" and r.accept("stream")
    name = r.name("the type of a message")
    r.expect(")")
    return streams, name


def read_option_statement(r: Reader) -> p.Option:
    option = read_option(r)
    r.expect(";")
    return option


def read_options(r: Reader) -> list[p.Option]:
    found: list[p.Option] = []
    if r.accept("["):
        while not found or r.accept(","):
            found.append(read_option(r))
        r.expect("]")
    return found


def read_option(r: Reader) -> p.Option:
    is_extension = r.accept("(")
    name = r.name("the name of an option")
    path: list[str] = []
    if is_extension:
        r.expect(")")
    else:
        name, *path = name.split(".")
    while r.accept("."):
        path.append(read_option_part(r))
    r.expect("=")
    return p.Option(name, read_value(r), is_extension, tuple(path))


def read_option_part(r: Reader) -> str:
    if not r.accept("("):
        return r.word("the name of an option")
    name = r.name("the name of an option")
    r.expect(")")
    return f"({name})"


def read_value(r: Reader) -> p.Value:
    token = r.peek()
    if token.kind == "string":
        return p.Literal(r.string("a string"), is_string=True)
    if r.accept("{"):
        return read_aggregate(r, "}")
    if r.accept("<"):
        return read_aggregate(r, ">")
    if r.accept("["):
        return read_items(r)
    sign = "-" if r.accept("-") else "+" if r.accept("+") else ""
    if r.peek().kind == "word":
        return p.Literal(sign + r.name("a value"))
    if r.peek().kind != "number":
        r.fail("a value")
    return p.Literal(sign + r.next().text)


def read_items(r: Reader) -> list[p.Value]:
    found: list[p.Value] = []
    while not r.accept("]"):
        found.append(read_value(r))
        if r.peek().text != "]":
            r.expect(",")
    return found


def read_aggregate(r: Reader, end: str) -> p.Aggregate:
    """Read a message in text format; a key that comes again makes its value a list."""
    found: p.Aggregate = {}
    while not r.accept(end):
        key = read_key(r)
        if not r.accept(":") and r.peek().text not in ("{", "<", "["):
            r.fail("':'")
        value = read_value(r)
        if key in found:
            before, more = found[key], value if isinstance(value, list) else [value]
            found[key] = [*before, *more] if isinstance(before, list) else [before, *more]
        else:
            found[key] = value
        r.accept(",", ";")
    return found


def read_key(r: Reader) -> str:
    if not r.accept("["):
        return r.word("a name")
    name = r.name("the name of an extension")
    while r.accept("/"):
        name += "/" + r.name("the name of a type")
    r.expect("]")
    return f"[{name}]"


OPTION: Parts = {"option": ("options", read_option_statement)}
TYPES: Parts = {"message": ("types", read_message), "enum": ("types", read_enum), "extend": ("extends", read_extend)}
IN_FILE: Parts = {**OPTION, **TYPES, "service": ("services", read_service)}
IN_MESSAGE: Parts = {
    **OPTION,
    **TYPES,
    "oneof": ("oneofs", read_oneof),
    "reserved": ("reserved", lambda r: read_reserved(r, p.MAX_NUMBER)),
    "extensions": ("extensions", read_extensions),
}
IN_ENUM: Parts = {**OPTION, "reserved": ("reserved", lambda r: read_reserved(r, (1 << 31) - 1))}
IN_SERVICE: Parts = {**OPTION, "rpc": ("methods", read_method)}

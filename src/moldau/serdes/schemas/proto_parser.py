"""Reads .proto texts: proto2, proto3 and editions. One function a construct; it starts behind the keyword."""

from __future__ import annotations

from .parsed import Limits, SchemaError
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
from .proto_lexer import Reader, tokens

LABELS = ("optional", "required", "repeated")


def parse_proto(text: str, limits: Limits) -> File:
    return read_file(Reader(text, tokens(text, limits)))


def read_file(r: Reader) -> File:
    file = File()
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


def read_statement(r: Reader, file: File) -> None:
    if r.accept("export", "local") and r.peek().text not in ("message", "enum"):
        r.fail("message or enum")
    if r.accept("import"):
        kind = r.next().text if r.peek().text in ("public", "weak", "option") else ""
        file.imports.append((kind, r.string("a path")))
        r.expect(";")
    elif r.accept("package"):
        if file.package:
            raise SchemaError("the package is given twice")
        file.package = r.name("a package")
        r.expect(";")
    elif r.accept("option"):
        file.options.append(read_option_statement(r))
    elif r.accept("message"):
        file.types.append(read_message(r))
    elif r.accept("enum"):
        file.types.append(read_enum(r))
    elif r.accept("extend"):
        file.extends.append(read_extend(r))
    elif r.accept("service"):
        file.services.append(read_service(r))
    elif not r.accept(";"):
        r.fail("import, package, option, message, enum, extend or service")


def read_message(r: Reader) -> Message:
    message = Message(r.word("the name of a message"))
    read_body(r, message)
    return message


def read_body(r: Reader, message: Message) -> None:
    r.expect("{")
    while not r.accept("}"):
        read_member(r, message)


def read_member(r: Reader, message: Message) -> None:
    """Keywords win: a field cannot have a type that is called like one."""
    if r.accept("export", "local") and r.peek().text not in ("message", "enum"):
        r.fail("message or enum")
    if r.accept("message"):
        message.types.append(read_message(r))
    elif r.accept("enum"):
        message.types.append(read_enum(r))
    elif r.accept("extend"):
        message.extends.append(read_extend(r))
    elif r.accept("oneof"):
        message.oneofs.append(read_oneof(r))
    elif r.accept("option"):
        message.options.append(read_option_statement(r))
    elif r.accept("reserved"):
        message.reserved.append(read_reserved(r, MAX_NUMBER))
    elif r.accept("extensions"):
        message.extensions.append(read_extensions(r))
    elif not r.accept(";"):
        message.fields.append(read_field(r))


def read_field(r: Reader, *, labelled: bool = True) -> Field:
    label = None
    if labelled and r.peek().text in LABELS:
        label = r.next().text
    if r.peek().text == "group" and r.peek(2).text == "=":
        return read_group(r, label)
    if r.peek().text == "map" and r.peek(1).text == "<":
        kind = read_map_type(r)
    else:
        kind = r.name("a field")
    field = Field(r.word("the name of a field"), kind, 0, label)
    r.expect("=")
    field.number = r.integer("the number of a field")
    read_field_options(r, field)
    r.expect(";")
    return field


def read_group(r: Reader, label: str | None) -> Field:
    r.position += 1
    name = r.word("the name of a group")
    r.expect("=")
    field = Field(name.lower(), name, r.integer("the number of a group"), label, group=Message(name))
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


def read_field_options(r: Reader, field: Field) -> None:
    """Options in brackets; default and json_name are no options but part of the field."""
    for option in read_options(r):
        if option.name == "default" and isinstance(option.value, Literal):
            field.default = option.value.text
        elif option.name == "json_name" and isinstance(option.value, Literal):
            field.json_name = option.value.text
        else:
            field.options.append(option)


def read_oneof(r: Reader) -> Oneof:
    oneof = Oneof(r.word("the name of a oneof"))
    r.expect("{")
    while not r.accept("}"):
        if r.accept("option"):
            oneof.options.append(read_option_statement(r))
        elif not r.accept(";"):
            oneof.fields.append(read_field(r, labelled=False))
    return oneof


def read_enum(r: Reader) -> Enum:
    enum = Enum(r.word("the name of an enum"))
    r.expect("{")
    while not r.accept("}"):
        if r.peek().text == "option" and r.peek(1).text != "=":
            r.position += 1
            enum.options.append(read_option_statement(r))
        elif r.peek().text == "reserved" and r.peek(1).text != "=":
            r.position += 1
            enum.reserved.append(read_reserved(r, (1 << 31) - 1))
        elif not r.accept(";"):
            enum.constants.append(read_constant(r))
    return enum


def read_constant(r: Reader) -> Constant:
    name = r.word("a constant")
    r.expect("=")
    constant = Constant(name, r.integer("the number of a constant"), read_options(r))
    r.expect(";")
    return constant


def read_extend(r: Reader) -> Extend:
    extend = Extend(r.name("the message to extend"))
    r.expect("{")
    while not r.accept("}"):
        if not r.accept(";"):
            extend.fields.append(read_field(r))
    return extend


def read_reserved(r: Reader, largest: int) -> Reserved:
    reserved = Reserved([], quoted=r.peek().kind != "word")
    while not reserved.values or r.accept(","):
        if r.peek().kind == "string":
            reserved.values.append(r.string("a name"))
        elif r.peek().kind == "word":
            reserved.values.append(r.word("a name"))
        else:
            reserved.values.append(read_range(r, largest))
    r.expect(";")
    return reserved


def read_range(r: Reader, largest: int) -> Range:
    first = r.integer("a number")
    if not r.accept("to"):
        return Range(first, first, alone=True)
    return Range(first, largest if r.accept("max") else r.integer("a number or max"))


def read_extensions(r: Reader) -> Extensions:
    extensions = Extensions([read_range(r, MAX_NUMBER)])
    while r.accept(","):
        extensions.ranges.append(read_range(r, MAX_NUMBER))
    extensions.options = read_options(r)
    r.expect(";")
    return extensions


def read_service(r: Reader) -> Service:
    service = Service(r.word("the name of a service"))
    r.expect("{")
    while not r.accept("}"):
        if r.accept("option"):
            service.options.append(read_option_statement(r))
        elif r.accept("rpc"):
            service.methods.append(read_method(r))
        elif not r.accept(";"):
            r.fail("option or rpc")
    return service


def read_method(r: Reader) -> Method:
    method = Method(r.word("the name of a method"), "", "")
    method.request_streams, method.request = read_parameter(r)
    r.expect("returns")
    method.response_streams, method.response = read_parameter(r)
    if r.accept("{"):
        while not r.accept("}"):
            if r.accept("option"):
                method.options.append(read_option_statement(r))
            elif not r.accept(";"):
                r.fail("option")
        r.accept(";")
    else:
        r.expect(";")
    return method


def read_parameter(r: Reader) -> tuple[bool, str]:
    r.expect("(")
    streams = r.peek().text == "stream" and r.peek(1).text != ")" and r.accept("stream")
    name = r.name("the type of a message")
    r.expect(")")
    return streams, name


def read_option_statement(r: Reader) -> Option:
    option = read_option(r)
    r.expect(";")
    return option


def read_options(r: Reader) -> list[Option]:
    found: list[Option] = []
    if r.accept("["):
        while not found or r.accept(","):
            found.append(read_option(r))
        r.expect("]")
    return found


def read_option(r: Reader) -> Option:
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
    return Option(name, read_value(r), is_extension, tuple(path))


def read_option_part(r: Reader) -> str:
    if not r.accept("("):
        return r.word("the name of an option")
    name = r.name("the name of an option")
    r.expect(")")
    return f"({name})"


def read_value(r: Reader) -> Value:
    token = r.peek()
    if token.kind == "string":
        return Literal(r.string("a string"), is_string=True)
    if r.accept("{"):
        return read_aggregate(r, "}")
    if r.accept("<"):
        return read_aggregate(r, ">")
    if r.accept("["):
        return read_items(r)
    sign = "-" if r.accept("-") else "+" if r.accept("+") else ""
    if r.peek().kind == "word":
        return Literal(sign + r.name("a value"))
    if r.peek().kind != "number":
        r.fail("a value")
    return Literal(sign + r.next().text)


def read_items(r: Reader) -> list[Value]:
    found: list[Value] = []
    while not r.accept("]"):
        found.append(read_value(r))
        if r.peek().text != "]":
            r.expect(",")
    return found


def read_aggregate(r: Reader, end: str) -> Aggregate:
    """A message in text format; a key that comes again makes its value a list."""
    found: Aggregate = {}
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

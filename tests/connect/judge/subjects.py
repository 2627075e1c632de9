"""What is judged: each transform, predicate and converter, with random settings, as rows of one table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.connect import data
from moldau.connect.converters.json import JSON, JsonConverter
from moldau.connect.data import Schema, Type
from moldau.connect.errors import DataError
from moldau.connect.java.dates import SimpleDateFormat
from tests.connect.judge import changes
from tests.connect.judge.inputs import NAMES, TEXTS, Inputs

PACKAGE = "org.apache.kafka.connect."
DEBEZIUM = "io.debezium."
TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
PATTERNS = (
    *("yyyy-MM-dd", "yyyyMMdd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yy/M/d H:m:s", "EEE, d MMM yyyy HH:mm:ss Z"),
    *(
        "yyyy.MM.dd G 'at' HH:mm:ss z",
        "hh 'o''clock' a, zzzz",
        "K:mm a",
        "yyyyMMddHHmmssSSS",
        "MMMM dd, yyyy",
        "D yyyy",
    ),
    *("kk:mm", "yyyy-MM-dd'T'HH:mm:ssXXX", "yyyy-MM-dd HHX", "dd.MM.yyyy", "S", "ss.SSSSS", "yyyyy.MMMMM.dd GGG"),
)
FORMAT_ONLY = ("YYYY-'W'ww-u", "w", "W F", "EEEE", "YY")
REGEXES = (
    *("(.*)-(.*)-(.*)", "or.*", "([a-z]+)", "(?<first>\\w+)\\.(?<second>\\w+)", "[a-z&&[^x]]+", "x\\d+y(\\d\\d)"),
    *("(?i)upper_(.*)", "[\\p{Upper}_]+.*", "\\Qfoo.bar\\E", "(o)(r)(d)(e)(r)s", "a|a-b-c", ".*", "(x)?.*", "[^a-m]*"),
    *(
        "\\w+\\.(\\w)\\1?\\w+",
        "(?s)or.*",
        "(?s:f.)(?i)O.*",
        "x(?-s).*",
        "[\\w&&[^\\d]]+",
        "(?:a-?)+.*",
        "(?=o).*",
        "o[a-z[.-]]{2,5}+",
        "(",
        "[z-a]",
        "a{",
        "\\",
    ),
)
REPLACEMENTS = ("$1", "x", "$2_$1", "${first}", "pre-$0", "\\$1", "$3$11", "", "$", "${nope}", "$9", "a\\")
TARGETS = ("string", "unix", "Date", "Time", "Timestamp")


@dataclass(frozen=True, slots=True)
class Subject:
    """One row: which operation of which class, how its settings are made, and how its items."""

    op: str
    class_name: str
    config: Callable[[Inputs], dict[str, str]]
    item: Callable[[Inputs], Any]


def _nulls(inputs: Inputs) -> dict[str, str]:
    return {"replace.null.with.default": inputs.one(("true", "false"))} if inputs.chance(0.4) else {}


def _names(inputs: Inputs, most: int = 3) -> str:
    return ",".join(inputs.random.sample(NAMES, inputs.random.randint(1, most)))


def _cast(inputs: Inputs) -> dict[str, str]:
    if inputs.chance(0.15):
        spec = inputs.one((*TYPES, "bytes", "a:b:c", "int8,int16", "INT8", "a:", "a: int8"))
    else:
        names = inputs.random.sample(NAMES, inputs.random.randint(1, 3))
        spec = ",".join(f"{name}:{inputs.one(TYPES)}" for name in names)
    return {"spec": spec} | _nulls(inputs)


def _extract(inputs: Inputs) -> dict[str, str]:
    field = inputs.one((*NAMES, "a.b", "b.a", "`a.b`", "`a.b`.c", "c.`x`y`", "`a", "a.", "d.e"))
    version = {"field.syntax.version": inputs.one(("V1", "V2", "v2"))} if inputs.chance(0.6) else {}
    return {"field": field} | version | _nulls(inputs)


def _header_from(inputs: Inputs) -> dict[str, str]:
    fields = inputs.random.sample(NAMES, inputs.random.randint(1, 2))
    headers = [f"h{at}" for at in range(len(fields))] + (["more"] if inputs.chance(0.03) else [])
    operation = inputs.one(("copy", "move", "move", "nope")) if inputs.chance(0.1) else inputs.one(("copy", "move"))
    return {"fields": ",".join(fields), "headers": ",".join(headers), "operation": operation} | _nulls(inputs)


def _insert(inputs: Inputs) -> dict[str, str]:
    kinds = ("topic", "partition", "offset", "timestamp", "static")
    chosen = inputs.random.sample(kinds, inputs.random.randint(1, 3))
    name = "a" if inputs.chance(0.1) else ""
    found = {f"{kind}.field": (name or f"new_{kind}") + inputs.one(("", "!", "?")) for kind in chosen}
    return found | ({"static.value": "fixed"} if inputs.chance(0.9) else {}) | _nulls(inputs)


def _mask(inputs: Inputs) -> dict[str, str]:
    replacement = inputs.one(("x", "7", "-1.5", "300", "99999999999999999999", "1e2", "true"))
    return {"fields": _names(inputs)} | ({"replacement": replacement} if inputs.chance(0.5) else {}) | _nulls(inputs)


def _replace(inputs: Inputs) -> dict[str, str]:
    found = {}
    if inputs.chance(0.5):
        found["exclude"] = _names(inputs, 2)
    if inputs.chance(0.4):
        found["include"] = _names(inputs, 4)
    if inputs.chance(0.6):
        old, new = inputs.random.sample(NAMES, 2), inputs.random.sample((*NAMES, "z", "y", "w"), 2)
        pairs = [f"{one}:{other}" for one, other in zip(old, new, strict=True)]
        found["renames"] = ",".join(pairs) if inputs.chance(0.97) else "a"
    return found | _nulls(inputs)


def _metadata(inputs: Inputs) -> dict[str, str]:
    found = {"schema.name": "new.Name"} if inputs.chance(0.7) else {}
    return found | ({"schema.version": inputs.one(("3", "x")[:1])} if inputs.chance(0.5) else {}) | _nulls(inputs)


def _timestamps(inputs: Inputs) -> dict[str, str]:
    found = {"target.type": inputs.one(TARGETS)}
    if inputs.chance(0.8):
        found["field"] = inputs.one(NAMES)
    if inputs.chance(0.8):
        formats = (*PATTERNS, *FORMAT_ONLY) if found["target.type"] == "string" else PATTERNS
        found["format"] = inputs.one(formats)
    if inputs.chance(0.5):
        found["unix.precision"] = inputs.one(("seconds", "milliseconds", "microseconds", "nanoseconds"))
    return found | _nulls(inputs)


def _timed_record(inputs: Inputs) -> Any:
    """Make a record with strings that are timestamps."""
    record = inputs.record()
    if inputs.chance(0.5):
        return record
    pattern = inputs.config.get("format") or inputs.one(PATTERNS)
    text = SimpleDateFormat(pattern).format(inputs.moment())
    if inputs.chance(0.2):
        text = inputs.one((text + " more", text[:-1], " " + text, text.upper(), text.replace("2", "3"), "0" + text))
    schema = Schema(Type.STRING) if inputs.chance(0.5) else None
    if inputs.chance(0.3):
        return record.but(value_schema=schema, value=text)
    if schema is None:
        return record.but(value_schema=None, value={"a": text, "b": inputs.moment()})
    struct = data.struct({"a": schema, "b": data.INT64})
    return record.but(value_schema=struct, value=data.Struct.of(struct, a=text, b=inputs.moment()))


def _record(inputs: Inputs) -> Any:
    return inputs.record()


def _no_settings(_inputs: Inputs) -> dict[str, str]:
    return {}


# name -> settings; those with both sides come twice
SIDED: dict[str, tuple[Callable[[Inputs], dict[str, str]], Callable[[Inputs], Any]]] = {
    "Cast": (_cast, _record),
    "ExtractField": (_extract, _record),
    "Flatten": (lambda inputs: {"delimiter": inputs.one((".", "_", ""))} if inputs.chance(0.5) else {}, _record),
    "HeaderFrom": (_header_from, _record),
    "HoistField": (lambda inputs: {"field": inputs.one(NAMES)}, _record),
    "InsertField": (_insert, _record),
    "MaskField": (_mask, _record),
    "ReplaceField": (_replace, _record),
    "SetSchemaMetadata": (_metadata, _record),
    "TimestampConverter": (_timestamps, _timed_record),
}
PLAIN: dict[str, Callable[[Inputs], dict[str, str]]] = {
    "DropHeaders": lambda inputs: {"headers": _names(inputs)},
    "Filter": _no_settings,
    "InsertHeader": lambda inputs: {"header": inputs.one(NAMES), "value.literal": _literal(inputs)},
    "RegexRouter": lambda inputs: {"regex": inputs.one(REGEXES), "replacement": inputs.one(REPLACEMENTS)},
    "TimestampRouter": lambda inputs: (
        ({"timestamp.format": inputs.one((*PATTERNS, *FORMAT_ONLY))} if inputs.chance(0.8) else {})
        | (
            {"topic.format": inputs.one(("${timestamp}/${topic}", "${topic}", "x-${topic}-${topic}"))}
            if inputs.chance(0.3)
            else {}
        )
    ),
    "ValueToKey": lambda inputs: {"fields": _names(inputs)} | _nulls(inputs),
}
TESTS: dict[str, Callable[[Inputs], dict[str, str]]] = {
    "HasHeaderKey": lambda inputs: {"name": inputs.one((*NAMES, ""))},
    "RecordIsTombstone": _no_settings,
    "TopicNameMatches": lambda inputs: {"pattern": inputs.one(REGEXES)},
}
PIECES = (
    *TEXTS,
    *(
        "1",
        "2.5",
        "-300",
        "70000",
        "1e40",
        "1e400",
        "true",
        "false",
        "null",
        '"',
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        " ",
        "\\",
    ),
    *(
        "2020-01-02",
        "10:11:12.013Z",
        "2020-01-02T10:11:12.013Z",
        "12345678901234567890",
        "0.1",
        "5.",
        ".5",
        "1-2",
        "abc",
    ),
    *('"a":1', '"k"', '"2020-01-02"', "[1, 2, 3]", '["a","b"]', '{"x": 1, "y": 2}', "[1,2.5]", "[[1],[2]]", "{1:2}"),
)


def _literal(inputs: Inputs) -> str:
    return "".join(inputs.one(PIECES) for _ in range(inputs.one((1, 1, 1, 2, 3, 5))))


def _pair(inputs: Inputs) -> tuple[Schema | None, Any]:
    return inputs.fitted() if inputs.chance(0.7) else _primitive_pair(inputs)


def _primitive_pair(inputs: Inputs) -> tuple[Schema | None, Any]:
    schema = Schema(inputs.one([each for each in Type if each.primitive]), optional=inputs.chance(0.3))
    value = inputs.value(schema)
    return (schema, value) if inputs.chance(0.7) else (None, data.typed(schema.type, value))


def _textual_pair(inputs: Inputs) -> tuple[Schema | None, Any]:
    """Make a pair without bytes, of which Java's text is an address."""
    while True:
        schema, value = _pair(inputs)
        if not _has_bytes(value):
            return schema, value


def _has_bytes(value: Any) -> bool:
    if isinstance(value, data.Struct):
        return any(_has_bytes(each) for each in value.values)
    if isinstance(value, list | tuple):
        return any(map(_has_bytes, value))
    if isinstance(value, dict):
        return any(_has_bytes(each) for each in value.values())
    return isinstance(value, bytes)


def _json_config(inputs: Inputs) -> dict[str, str]:
    found = {"schemas.enable": inputs.one(("true", "false"))}
    if inputs.chance(0.5):
        found["decimal.format"] = inputs.one(("NUMERIC", "base64"))
    return found | _nulls(inputs)


def _json_read_config(inputs: Inputs) -> dict[str, str]:
    found = _json_config(inputs)
    if inputs.chance(0.2):
        found["schema.content"] = JsonConverter(JSON.settings.parse({"converter.type": "value"})).schema_text(
            inputs.schema()
        )
    return found


JSON_PIECES = (
    "1",
    "-0",
    "1.5",
    "1e3",
    "12345678901234567890",
    "true",
    "null",
    '"x"',
    '"AQI="',
    "[]",
    "{}",
    "[1,2]",
    '{"a":1}',
)


def _json_bytes(inputs: Inputs) -> bytes | None:
    """Make JSON: what our converter writes, possibly damaged, or a piece under a schema that may not fit."""
    if inputs.chance(0.02):
        return None
    kind = inputs.random.random()
    settings = JSON.settings.parse({"converter.type": "value"} | _json_config(inputs))
    converter = JsonConverter(settings)
    if kind < 0.5:
        schema, value = inputs.fitted()
        return converter.write("t", schema, value) if _is_writable(schema, value) else b"{}"
    if kind < 0.8:
        schema = converter.schema_text(inputs.schema())
        return f'{{"schema":{schema},"payload":{inputs.one(JSON_PIECES)}}}'.encode()
    if kind < 0.9:
        return inputs.one(
            (*JSON_PIECES, "", " ", "nul", "[1", '{"a":}', "1 2", '{"schema":{"type":"x"},"payload":1}')
        ).encode()
    return json.dumps(_plain_json(inputs)).encode()


def _is_writable(schema: Schema | None, value: Any) -> bool:
    try:
        JsonConverter(JSON.settings.parse({"converter.type": "value"})).write("t", schema, value)
    except DataError:
        return False
    return True


def _plain_json(inputs: Inputs, depth: int = 3) -> Any:
    kind = inputs.random.random()
    if depth and kind < 0.3:
        return {name: _plain_json(inputs, depth - 1) for name in inputs.random.sample(NAMES, 2)}
    if depth and kind < 0.5:
        return [_plain_json(inputs, depth - 1) for _ in range(inputs.random.randint(0, 3))]
    return inputs.one((None, True, 5, 1 << 65, -(1 << 63), 1.25, 1e100, "text", inputs.one(TEXTS)))


def _any_bytes(inputs: Inputs) -> bytes | None:
    return None if inputs.chance(0.1) else inputs.random.randbytes(inputs.one((0, 1, 2, 4, 8, 3)))


def _text_bytes(inputs: Inputs) -> bytes | None:
    """Make bytes of a text; how many characters stand for a run of invalid bytes is up to the library."""
    encoding = inputs.config.get("converter.encoding", "UTF-8")
    text = _literal(inputs).encode(encoding, "replace")
    return None if inputs.chance(0.1) else text + (b"\xff" if encoding == "UTF-8" and inputs.chance(0.2) else b"")


def _boolean_bytes(inputs: Inputs) -> bytes | None:
    return inputs.one((None, b"\0", b"\1", b"\2", b"", b"\0\1"))


def _literal_bytes(inputs: Inputs) -> bytes | None:
    return None if inputs.chance(0.02) else _literal(inputs).encode()


def _chain_config(inputs: Inputs) -> dict[str, str]:
    found: dict[str, str] = {"transforms": "x,y,z", "predicates": "p,q"}
    for alias in ("p", "q"):
        name = inputs.one(list(TESTS))
        settings = {
            "TopicNameMatches": {"pattern": inputs.one(("or.*", "[a-z.]+"))},
            "HasHeaderKey": {"name": inputs.one(NAMES)},
        }
        found[f"predicates.{alias}.type"] = f"{PACKAGE}transforms.predicates.{name}"
        found |= {f"predicates.{alias}.{key}": each for key, each in settings.get(name, {}).items()}
    for alias in ("x", "y", "z"):
        name = inputs.one([*SIDED, *PLAIN])
        own = SIDED[name][0](inputs) if name in SIDED else PLAIN[name](inputs)
        side = inputs.one(("$Key", "$Value")) if name in SIDED else ""
        found[f"transforms.{alias}.type"] = f"{PACKAGE}transforms.{name}{side}"
        found |= {f"transforms.{alias}.{key}": each for key, each in own.items()}
        if name == "Filter" or inputs.chance(0.5):
            found[f"transforms.{alias}.predicate"] = inputs.one(("p", "q"))
            if inputs.chance(0.5):
                found[f"transforms.{alias}.negate"] = inputs.one(("true", "false"))
    return found


def _table() -> dict[str, Subject]:
    found: dict[str, Subject] = {}
    for name, (config, item) in SIDED.items():
        for side in ("$Key", "$Value"):
            found[name + side] = Subject("transform", f"{PACKAGE}transforms.{name}{side}", config, item)
    for name, config in PLAIN.items():
        found[name] = Subject("transform", f"{PACKAGE}transforms.{name}", config, _record)
    for name, config in TESTS.items():
        found[name] = Subject("predicate", f"{PACKAGE}transforms.predicates.{name}", config, _record)
    found["chain"] = Subject("chain", "", _chain_config, _record)
    for name in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short"):
        class_name = f"{PACKAGE}converters.{name}Converter"
        read = _boolean_bytes if name == "Boolean" else _any_bytes
        found[f"{name} write"] = Subject("write", class_name, _no_settings, _primitive_pair)
        found[f"{name} read"] = Subject("read", class_name, _no_settings, read)
    storage = f"{PACKAGE}storage."
    encoding: Callable[[Inputs], dict[str, str]] = lambda inputs: (  # noqa: E731
        {"converter.encoding": inputs.one(("UTF-8", "ISO-8859-1", "UTF-16BE", "US-ASCII"))}
        if inputs.chance(0.4)
        else {}
    )
    found["String write"] = Subject("write", storage + "StringConverter", encoding, _textual_pair)
    found["String read"] = Subject("read", storage + "StringConverter", encoding, _text_bytes)
    found["Header write"] = Subject("write", storage + "SimpleHeaderConverter", _no_settings, _pair)
    found["Header read"] = Subject("read", storage + "SimpleHeaderConverter", _no_settings, _literal_bytes)
    found["Json write"] = Subject("write", JSON.class_name, _json_config, _pair)
    found["Json read"] = Subject("read", JSON.class_name, _json_read_config, _json_bytes)
    for name, (config, item) in changes.TRANSFORMS.items():
        found[name.rpartition(".")[2]] = Subject("transform", f"{DEBEZIUM}transforms.{name}", config, item)
    return found


SUBJECTS = _table()

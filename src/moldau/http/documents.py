"""The documents that endpoints take and give, as rows, and JSON Schemas made from them.

`name:type` is a field, `name?:type` one that may be absent. A type is a word of WORDS, `{A,B}` one of these words,
`@Row` another row, `[type]` a list, `some[type]` one that is not empty, and `|null` allows null. `+Row` takes over the
fields of another row. What is taken may have no other fields than these; so a body that passes here has the shape that
its endpoint expects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

from moldau.http.errors import HttpError

WORDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "name": {"type": "string", "pattern": "^[^\\u0000]*$"},  # librdkafka has C's strings
    "boolean": {"type": "boolean"},
    "int16": {"type": "integer", "minimum": -(2**15), "maximum": 2**15 - 1},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "count": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    "numeral": {"type": ["integer", "string"], "minimum": 0, "maximum": 2**31 - 1, "pattern": "^[0-9]{1,9}$"},
    "offset": {"type": "integer", "minimum": 0, "maximum": 2**63 - 2},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "time": {"type": "string", "format": "date-time"},
    "base64": {"type": "string", "contentEncoding": "base64"},
    "any": {},
    "text": {"type": ["string", "number", "boolean", "null"]},  # Jackson makes a string of these
    "object": {"type": "object"},
    "assignments": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
}
UNPROCESSABLE = ("required", "additionalProperties", "minItems")
_FIELD = re.compile(r"\+(?P<base>\w+)|(?P<name>[\w.]+)(?P<absent>\??):(?P<type>\S+)")


class Documents:
    """Rows of documents that are taken and given. `known` are functions that tell common shapes at a glance: checking
    a body against its schema takes long."""

    def __init__(
        self,
        taken: Mapping[str, str],
        given: Mapping[str, str],
        known: Mapping[str, Callable[[Any], bool]] | None = None,
    ) -> None:
        self._taken, self._given, self._known = taken, given, known or {}
        self._validator = cache(lambda name: strict()({**ref(name), "components": {"schemas": self.components}}))

    @cached_property
    def components(self) -> dict[str, dict[str, Any]]:
        """All rows as JSON Schemas that refer to each other by name."""
        taken = {name: _row(text, self._taken, closed=True) for name, text in self._taken.items()}
        return taken | {name: _row(text, self._given, closed=False) for name, text in self._given.items()}

    def check(self, name: str, body: Any) -> Any:
        """Return the body, if it has the shape of a row; what is missing or unknown is 422, what is wrong is 400."""
        if name in self._known and self._known[name](body):
            return body
        for error in self._validator(name).iter_errors(body):
            where = error.json_path.removeprefix("$").removeprefix(".")
            status = 422 if error.validator in UNPROCESSABLE else 400
            raise HttpError(status, f"{where or 'body'}: {_short(error.message)}")
        return body


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _row(text: str, rows: Mapping[str, str], closed: bool) -> dict[str, Any]:
    if text.startswith("["):
        return _type(text)
    fields = dict(_fields(text, rows))
    made: dict[str, Any] = {"type": "object", "properties": {name: kind for name, (kind, _) in fields.items()}}
    if required := [name for name, (_, absent) in fields.items() if not absent]:
        made["required"] = required
    return made | ({"additionalProperties": False} if closed else {})


def _fields(text: str, rows: Mapping[str, str]) -> list[tuple[str, tuple[dict[str, Any], bool]]]:
    found = []
    for field in _FIELD.finditer(text):
        if field["base"]:
            found += _fields(rows[field["base"]], rows)
        else:
            found.append((field["name"], (_type(field["type"]), bool(field["absent"]))))
    return found


def _type(text: str) -> dict[str, Any]:
    if text.endswith("|null"):
        inner = _type(text.removesuffix("|null"))
        if isinstance(inner.get("type"), str) and "enum" not in inner:
            return {**inner, "type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]}
    if text.startswith("some["):
        return {**_type(text.removeprefix("some")), "minItems": 1}
    match text[0]:
        case "[":
            return {"type": "array", "items": _type(text[1:-1])}
        case "{":
            return {"type": "string", "enum": text[1:-1].split(",")}
        case "@":
            return ref(text[1:])
    return WORDS[text]


def _is_integer(_: Any, value: Any) -> bool:
    """Refuse 1.0, which JSON Schema takes for an integer and Kafka's messages do not."""
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def strict() -> Any:
    """Return the class of validators; services that check no documents need not import it."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    return extend(Draft202012Validator, type_checker=checker)


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:120]} ... {message[-70:]}"

"""Validators of JSON Schema that come to an end, whatever schema a stranger brings.

They are those of `jsonschema`, but that each keyword is a step and steps are counted (a schema that refers twice to
itself at every level would take for ever), that regular expressions run in linear time, and that unique items are
found without comparing each with each.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import re2  # pyright: ignore[reportMissingTypeStubs]
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

MOST_STEPS = 1_000_000  # a value of a megabyte, the most that a record has, takes fewer
PLAIN = ("const", "enum", "default", "examples")  # what stands there is a value, not a schema
LIBRARY: Any = re2
QUIET: Any = LIBRARY.Options()
QUIET.log_errors = False

Keyword = Callable[[Any, Any, Any, Any], Any]
_steps = threading.local()


class TooMuch(Exception):
    """The steps are used up."""


def start() -> None:
    """Count from here on, in this thread."""
    _steps.left = MOST_STEPS


@cache
def bounded(validator: Any) -> Any:
    """Return the class of validators with these bounds. Documents must not name a dialect of their own: `plain`."""
    own = {name: keyword for name, keyword in OWN.items() if name in validator.VALIDATORS}
    return extend(validator, {name: _counted(keyword) for name, keyword in {**validator.VALIDATORS, **own}.items()})


def plain(document: Any) -> Any:
    """Return a schema without `$schema` anywhere: it would make `jsonschema` go on with another class."""
    if isinstance(document, list):
        return [plain(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {
        name: part if name in PLAIN else plain(part)
        for name, part in document.items()
        if name != "$schema" or not isinstance(part, str)
    }


def _counted(keyword: Keyword) -> Keyword:
    def step(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _steps.left -= 1
        if _steps.left < 0:
            raise TooMuch
        return keyword(validator, value, instance, schema)

    return step


@lru_cache(maxsize=1000)
def expression(pattern: str) -> Any:
    """Compile a pattern by re2, or by Python if it looks ahead or behind, which re2 does not know."""
    try:
        return LIBRARY.compile(pattern, QUIET)
    except LIBRARY.error:
        return re.compile(pattern)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not expression(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if expression(pattern).search(name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    known, patterns = schema.get("properties", {}), [expression(one) for one in schema.get("patternProperties", {})]
    extra = [name for name in instance if name not in known and not any(one.search(name) for one in patterns)]
    if validator.is_type(inner, "object"):
        for name in extra:
            yield from validator.descend(instance[name], inner, path=name)
    elif not inner and extra:
        yield ValidationError(f"Additional properties are not allowed: {', '.join(map(repr, extra))}")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array") and len(set(map(_key, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _key(value: Any) -> Any:
    """Return what is equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(part)) for name, part in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(_key, value)))
    return ("boolean", value) if isinstance(value, bool) else value


OWN: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}

"""JSON as Confluent's registry reads and writes it, which is Jackson's way and Java's way of writing numbers.

Canonical texts are compared and hashed by others, so they have to agree to the character: no spaces, non-ASCII
characters as they are, control characters with upper-case hexadecimal digits, doubles as Java prints them.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, NoReturn

from .parsed import Limits, SchemaError

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*|[\[{]|[\]}]', re.DOTALL)
COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
ESCAPES = str.maketrans({chr(code): f"\\u{code:04X}" for code in range(32)} | SHORT)
NOT_FINITE = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def check_depth(text: str, limits: Limits) -> None:
    """Refuse a document that nests deeper than allowed, before anything recursive looks at it."""
    depth = 0
    for token in TOKEN.finditer(text):
        bracket = text[token.start()]
        if bracket in "[{":
            depth += 1
            if depth > limits.depth:
                raise SchemaError(f"the schema nests deeper than {limits.depth} levels at character {token.start()}")
        elif bracket in "]}":
            depth -= 1


def loads(text: str, limits: Limits, *, comments: bool = False, exact: bool = False) -> Any:
    """Return the document that the text holds; of a key that is given twice the last counts. `exact` keeps the digits
    of fractions, as Decimal."""
    check_depth(text, limits)
    if comments and "/" in text:
        text = COMMENT.sub(lambda found: found.group(1) or " ", text)
    try:
        value = json.loads(text, parse_constant=no_constant, parse_float=Decimal if exact else None)
        json_text_is_unicode(text, value)
    except RecursionError:
        raise SchemaError("the schema nests too deeply") from None
    except ValueError as error:
        raise SchemaError(f"not valid JSON: {error}") from None
    return value


def in_order(value: Any) -> Any:
    """Return the same value with the keys of all its objects in order."""
    match value:
        case dict():
            return {key: in_order(value[key]) for key in sorted(value)}
        case list():
            return [in_order(item) for item in value]
    return value


def json_text_is_unicode(text: str, value: Any) -> None:
    """Fail where escapes name half of a surrogate pair, which no UTF-8 text can hold."""
    if "\\ud" in text or "\\uD" in text:
        dumps(value).encode()


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def dumps(value: Any) -> str:
    """Return the compact text of a JSON value; the order of keys is kept."""
    match value:
        case str():
            return string(value)
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case int() | Decimal():
            return str(value)
        case float():
            return number(value)
        case dict():
            return "{" + ",".join(f"{string(key)}:{dumps(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(dumps, value)) + "]"
    raise TypeError(f"{type(value).__name__} is no JSON value")


def string(text: str) -> str:
    return f'"{text.translate(ESCAPES)}"'


def number(value: float) -> str:
    """Write a double as Java's Double.toString does: plain from 0.001 to ten million, otherwise with an exponent E."""
    if not math.isfinite(value):
        return NOT_FINITE.get(value, '"NaN"')
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        sign, digits = ("-", mantissa[1:]) if value < 0 else ("", mantissa)
        whole, _, fraction = digits.partition(".")
        every = (whole + fraction).lstrip("0").rstrip("0") or "0"
        power = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
        return f"{sign}{every[0]}.{every[1:] or '0'}E{power}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"

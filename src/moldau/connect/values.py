"""Values as text and text as values: what SimpleHeaderConverter, InsertHeader and MaskField share.

`parse` guesses a type: null, booleans, the narrowest number that fits, ISO dates and times, arrays and maps of these,
and otherwise a string. What it makes carries its type (`Int8`, ..), because an array of mixed types has no schema.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.connect import data
from moldau.connect.data import MS_PER_DAY, NULL, Instant, Schema, SchemaAndValue, Struct, Type
from moldau.connect.errors import DataError
from moldau.connect.java.dates import ParseError, SimpleDateFormat
from moldau.java import numbers
from moldau.java.numbers import trim

JAVA_DATE = SimpleDateFormat("EEE MMM dd HH:mm:ss zzz y")
ISO_DATE = SimpleDateFormat("yyyy-MM-dd")
ISO_TIME = SimpleDateFormat("HH:mm:ss.SSS'Z'")
ISO_TIMESTAMP = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
# Texts of these lengths may be temporal: the length alone decides which.
TEMPORAL = {
    12 + 1: (data.TIME_SCHEMA, ISO_TIME),
    24: (data.TIMESTAMP_SCHEMA, ISO_TIMESTAMP),
    10: (data.DATE_SCHEMA, ISO_DATE),
}
DELIMITERS = frozenset(':,{}[]"')
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?")
NUMERIC = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)  # each holds those before


def parse_decimal(text: str) -> Decimal:
    """Read a number as BigDecimal does; a ValueError is a NumberFormatException."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text} is not a number")
    found = Decimal(text)
    exponent = found.as_tuple().exponent
    if not isinstance(exponent, int) or not data.fits(exponent, 32):
        raise ValueError(f"{text} has too large an exponent")
    return found if found else found.copy_abs()


def date_text(value: int) -> str:
    """Write a `java.util.Date` in the shortest of Connect's three ISO forms."""
    if value < MS_PER_DAY:
        return ISO_TIME.format(value)
    return (ISO_TIMESTAMP if value % MS_PER_DAY else ISO_DATE).format(value)


def scalar_text(schema: Schema | None, value: Any) -> str | None:
    """Write a number, a boolean or a string as `toString` of its Java class does; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Instant):
        return None
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        single = schema.type is Type.FLOAT32 if schema else isinstance(value, data.Float32)
        return (numbers.float_text if single else numbers.double_text)(value)
    return numbers.decimal_text(value) if isinstance(value, Decimal) else None


def to_text(schema: Schema | None, value: Any) -> str | None:
    """Write a value so that `parse` reads it back, as far as it can."""
    return None if value is None else _append(schema, value, False)


def _append(schema: Schema | None, value: Any, embedded: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return _quoted(value) if embedded else value
    scalar = scalar_text(schema, value)
    if scalar is not None:
        return scalar
    inner = schema.value_schema if schema else None
    match value:
        case bytes():
            encoded = base64.b64encode(value).decode()
            return f'"{encoded}"' if embedded else encoded
        case list() | tuple():
            return "[" + ",".join(_append(inner, each, True) for each in value) + "]"
        case dict():
            keys = schema.key_schema if schema else None
            pairs = (f"{_append(keys, key, True)}:{_append(inner, each, True)}" for key, each in value.items())
            return "{" + ",".join(pairs) + "}"
        case Struct():
            fields = value.schema.fields
            pairs = (f"{_quoted(each.name)}:{_append(each.schema, value.get(each.name), True)}" for each in fields)
            return "{" + ",".join(pairs) + "}"
        case Instant():
            return date_text(value)
        case _:
            raise DataError(f"Failed to serialize unexpected value type {type(value).__qualname__}: {value}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def to_string(schema: Schema | None, value: Any) -> str:
    """Write a value as Java's `toString` does, which is what StringConverter and a Cast to string write."""
    scalar = scalar_text(schema, value)
    if scalar is not None:
        return scalar
    inner = schema.value_schema if schema else None
    match value:
        case None:
            return "null"
        case list() | tuple():
            return "[" + ", ".join(to_string(inner, each) for each in value) + "]"
        case dict():
            keys = schema.key_schema if schema else None
            return "{" + ", ".join(f"{to_string(keys, k)}={to_string(inner, v)}" for k, v in value.items()) + "}"
        case Struct():
            shown = (f"{place.name}={to_string(place.schema, each)}" for place, each in value if each is not None)
            return "Struct{" + ",".join(shown) + "}"
        case Instant():
            return JAVA_DATE.format(value)
        case _:
            raise DataError(f"A value of class {type(value).__qualname__} has no text")


def to_number(value: str, kind: Type) -> int | float:
    """Read a text as a number of a type, cutting off what does not fit as Java's narrowing does."""
    try:
        found = parse_decimal(value)
    except ValueError:
        raise DataError(f"Unable to convert {value} to a number") from None
    if kind in data.BITS:
        return data.wrap(_whole(found), data.BITS[kind])
    return data.to_float32(float(found)) if kind is Type.FLOAT32 else float(found)


def _whole(value: Decimal) -> int:
    """Drop the fraction; the low 64 bits of what is larger than any Long, and nothing of what is far larger."""
    return 0 if value.adjusted() > 1000 else data.wrap(int(value), 64)


def parse(text: str | None) -> SchemaAndValue:
    """Guess the value of a text."""
    if text is None:
        return NULL
    if not text:
        return SchemaAndValue(data.STRING, text)
    return _Reader(_Tokens(text)).read(False) or NULL


class _Tokens:
    """A text in tokens: delimiters, and what is between them; a backslash makes a delimiter an ordinary character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.upcoming: str | None = None
        self.previous: str | None = None

    def mark(self) -> int:
        return self.at - len(self.upcoming or "")

    def rewind(self, position: int) -> None:
        self.at, self.upcoming, self.previous = position, None, None

    def __bool__(self) -> bool:
        return self.upcoming is not None or self.at < len(self.text)

    def next(self) -> str:
        self.previous = self._token() if self.upcoming is None else self.upcoming
        self.upcoming = None
        return self.previous

    def next_four(self) -> str | None:
        start = self.mark()
        for _ in range(4):
            if not self:
                self.rewind(start)
                return None
            self.next()
        return self.text[start : self.at]

    def take(self, expected: str) -> bool:
        """Consume the next token that is not blank if it is the expected one."""
        if self.upcoming is None:
            if not self:
                return False
            self.upcoming = self._token()
        while not trim(self.upcoming) and self.at < len(self.text):
            self.upcoming = self._token()
        if trim(self.upcoming) != expected:
            return False
        self.upcoming = None
        return True

    def _token(self) -> str:
        start, escaped = self.at, False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in DELIMITERS and not escaped:
                if start == self.at:
                    self.at += 1
                break
            escaped = char == "\\" and not escaped
            self.at += 1
        return self.text[start : self.at]


class _Reader:
    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens

    def read(self, embedded: bool) -> SchemaAndValue | None:
        tokens = self.tokens
        if not tokens:
            return None
        if embedded and tokens.take('"'):
            return self._quoted()
        for literal, found in LITERALS.items():
            if self._literal(literal, embedded):
                return found
        start = tokens.mark()
        try:
            if tokens.take("["):
                return self._array()
            if tokens.take("{"):
                return self._map()
        except DataError:
            tokens.rewind(start)
        token = tokens.next()
        if not trim(token):
            return SchemaAndValue(data.STRING, token)
        return self._token(embedded, trim(token))

    def _literal(self, literal: str, embedded: bool) -> bool:
        start = self.tokens.mark()
        if self.tokens.take(literal) and (embedded or not self.tokens):
            return True
        self.tokens.rewind(start)
        return False

    def _token(self, embedded: bool, token: str) -> SchemaAndValue:
        if token[0].isdecimal():
            temporal = self._temporal(token)
            if temporal is not None:
                return temporal
        if token[0].isdecimal() or token[0] in "+-":
            try:
                return _number(parse_decimal(token))
            except ValueError:
                pass
        if embedded:
            raise DataError("Failed to parse embedded value")
        return SchemaAndValue(data.STRING, self.tokens.text)

    def _temporal(self, token: str) -> SchemaAndValue | None:
        """Read a temporal literal; unescaped colons have split it into five tokens."""
        start = self.tokens.mark()
        rest = self.tokens.next_four()
        found = _temporal(token + rest) if rest is not None else None
        if found is None:
            self.tokens.rewind(start)
            found = _temporal(token)
        return found

    def _quoted(self) -> SchemaAndValue:
        content = ""
        while self.tokens and not self.tokens.take('"'):
            content += self.tokens.next()
        return _temporal(content) or SchemaAndValue(data.STRING, content)

    def _array(self) -> SchemaAndValue:
        items: list[Any] = []
        common = _Common()
        tokens = self.tokens
        while tokens:
            if tokens.take("]"):
                if common.schema is None:
                    return SchemaAndValue(Schema(Type.ARRAY), items)
                return SchemaAndValue(data.array(common.schema), [_align(common.schema, each) for each in items])
            if tokens.take(","):
                raise DataError(f"Unable to parse an empty array element: {tokens.text}")
            element = self.read(True)
            common.add(element)
            items.append(element.value if element else None)
            start = tokens.mark()
            if tokens.take("]"):
                tokens.rewind(start)
            elif not tokens.take(","):
                raise DataError("Array elements missing ',' delimiter")
        raise DataError(f"Array is missing terminating ']': {tokens.text}")

    def _map(self) -> SchemaAndValue:
        items: list[tuple[Any, Any]] = []
        keys, values = _Common(), _Common()
        tokens = self.tokens
        while tokens:
            if tokens.take("}"):
                return _map_of(keys.schema, values.schema, items)
            if tokens.take(","):
                raise DataError(f"Unable to parse a map entry with no key or value: {tokens.text}")
            key = self.read(True)
            if key is None or key.value is None:
                raise DataError(f"Map entry may not have a null key: {tokens.text}")
            if not tokens.take(":"):
                raise DataError(f"Map entry is missing ':' at {tokens.at} in {tokens.text}")
            value = self.read(True)
            items.append((key.value, value.value if value else None))
            tokens.take(",")
            keys.add(key)
            values.add(value)
        raise DataError(f"Map is missing terminating '}}': {tokens.text}")


LITERALS = {
    "null": None,
    "true": SchemaAndValue(data.BOOLEAN, True),
    "false": SchemaAndValue(data.BOOLEAN, False),
}


def _map_of(keys: Schema | None, values: Schema | None, items: list[tuple[Any, Any]]) -> SchemaAndValue:
    if keys is None:
        return SchemaAndValue(Schema(Type.MAP), {_hashable(key): value for key, value in items})
    aligned = ((_align(keys, key), _align(values, value) if values else value) for key, value in items)
    made = {_hashable(key): value for key, value in aligned}
    return SchemaAndValue(Schema(Type.MAP, key_schema=keys, value_schema=values), made)


def _hashable(key: Any) -> Any:
    if isinstance(key, list):
        return tuple(_hashable(each) for each in key)
    if isinstance(key, dict):
        raise DataError("A map cannot be the key of a map")
    return key


def _temporal(text: str) -> SchemaAndValue | None:
    text = text.replace("\\:", ":")
    row = TEMPORAL.get(len(text))
    if row is None:
        return None
    try:
        return SchemaAndValue(row[0], row[1].parse(text))
    except ParseError:
        return None


def _number(value: Decimal) -> SchemaAndValue:
    if value.adjusted() < 30 and value == value.to_integral_value():
        whole = int(value)
        for kind, bits in data.BITS.items():
            if data.fits(whole, bits):
                return SchemaAndValue(data.REQUIRED[kind], data.typed(kind, whole))
    _, digits = data.unscaled(value)
    single, double = data.to_float32(float(value)), float(value)
    if digits and single not in (float("inf"), float("-inf")):
        return SchemaAndValue(data.FLOAT32, data.Float32(single))
    if digits and double not in (float("inf"), float("-inf")):
        return SchemaAndValue(data.FLOAT64, double)
    return SchemaAndValue(data.decimal(digits), value)


class _Common:
    """The schema that the elements of an array or a map have in common, if there is one."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self.compatible = True

    def add(self, found: SchemaAndValue | None) -> None:
        if found is None or found.schema is None or not self.compatible:
            return
        self.schema = found.schema if self.schema is None else _merge(self.schema, found.schema)
        self.compatible = self.schema is not None


def _merge(one: Schema, other: Schema) -> Schema | None:
    if one.type is other.type:
        return other
    if one.type in NUMERIC and other.type in NUMERIC:
        return max(one, other, key=lambda each: NUMERIC.index(each.type))
    return None


def _align(schema: Schema, value: Any) -> Any:
    """Convert an element to the schema that all have in common."""
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    convert = ALIGN.get(schema.type)
    return convert(schema, value) if convert else value


def _align_number(schema: Schema, value: Any) -> Any:
    if isinstance(value, Instant):
        if schema.name in data.LOGICAL:
            return value
        raise DataError(f"Unable to convert {value} to a number")
    if isinstance(value, str | bytes | list | dict | bool):
        raise DataError(f"Unable to convert {value} to a number")
    if schema.name in data.LOGICAL:
        return data.decode_logical(schema, data.wrap(int(value), data.BITS[schema.type]))
    if schema.type in data.BITS:
        return data.typed(schema.type, data.wrap(int(value), data.BITS[schema.type]))
    return data.typed(schema.type, data.to_float32(value) if schema.type is Type.FLOAT32 else float(value))


ALIGN: dict[Type, Callable[[Schema, Any], Any]] = dict.fromkeys(NUMERIC, _align_number)

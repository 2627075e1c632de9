"""Functions of texts and bytes. Positions count UTF-16 units, as Java's strings do."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re as plain_re
import struct
import unicodedata
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex

from moldau.java.regex import RegexError, finds, replace_all, translate

from ..casts import text_to_bytes
from .registry import scalar

SECONDS = 5  # how long a regular expression may search


def units(text: str) -> str:
    """Return a text with a character for each UTF-16 unit: surrogates stand alone."""
    if text.isascii() or max(text) < "\U00010000":
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))


def of_units(text: str) -> str:
    """Join surrogates again."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def length(text: str) -> int:
    return len(units(text))


scalar("ucase(STRING text) -> STRING", doc="Returns a text in upper case.")(str.upper)
scalar("lcase(STRING text) -> STRING", doc="Returns a text in lower case.")(str.lower)


@scalar("initcap(STRING text) -> STRING", doc="Begins each word with a capital and goes on in lower case.")
def initcap(text: str) -> str:
    """Blanks before the first word are lost, as in ksqlDB."""
    words = plain_re.findall(r"[^ \t-\r]+[ \t-\r]*", text.lower())
    return "".join(word[0].upper() + word[1:] for word in words)


@scalar("trim(STRING text) -> STRING", doc="Removes blanks at both ends.")
def trim(text: str) -> str:
    return text.strip("".join(map(chr, range(33))))


scalar("len(STRING text) -> INTEGER", doc="Returns the length of a text or of bytes.")(length)
scalar("len(BYTES data) -> INTEGER")(len)


@scalar("replace(STRING text, STRING old, STRING new) -> STRING", doc="Replaces each occurrence of a text.")
def replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


@scalar("md5(STRING text) -> STRING", doc="Returns the MD5 digest of a text in hex.")
def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@scalar("chr(INTEGER code) -> STRING", doc="Returns the character of a code point or of an escape such as \\u004b.")
def chr_code(code: int) -> str | None:
    return chr(code) if 0 <= code <= 0x10FFFF else None


_ESCAPE = plain_re.compile(r"\\(?:u+\+?([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.?))", plain_re.DOTALL)
_CONTROLS = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


def _unescaped(found: plain_re.Match[str]) -> str:
    code, octal, char = found.groups()
    if char == "u":
        raise ValueError("an escape \\u needs four hex digits")
    return chr(int(code, 16)) if code else chr(int(octal, 8)) if octal else _CONTROLS.get(char, char)


@scalar("chr(STRING escape) -> STRING")
def chr_escape(escape: str) -> str | None:
    """Read all of Java's escapes, but only in a text that begins with the code of a character."""
    if len(escape) < 6 or not escape.startswith("\\u"):
        return None
    return of_units(_ESCAPE.sub(_unescaped, escape))


@scalar(
    "instr(STRING text, STRING part) -> INTEGER",
    "instr(STRING text, STRING part, INTEGER position) -> INTEGER",
    "instr(STRING text, STRING part, INTEGER position, INTEGER occurrence) -> INTEGER",
    doc="Returns the place of a part in a text, from 1; 0 if it is not there. A negative position searches backwards.",
    takes_nulls=True,
)
def instr(text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1) -> int | None:
    """Occurrences may overlap. Backwards, the position is that of the part's last character."""
    if position is None or occurrence is None:
        return None
    if text is None or part is None:
        return 0
    backwards, distance = position < 0, abs(position)
    whole, wanted = (units(text[::-1]), units(part[::-1])) if backwards else (units(text), units(part))
    if distance > len(whole) or occurrence < 1:
        return 0
    rest = whole[distance - 1 :]
    at = -1
    for _ in range(occurrence if wanted else 1):
        at = rest.find(wanted, at + 1)
        if at < 0:
            return 0
    return len(whole) - distance - at - len(wanted) + 2 if backwards else at + distance


def _start(position: int, size: int) -> int:
    if position < 0:
        return max(0, size + position)
    return min(max(0, position - 1), size)


@scalar(
    "substring(STRING text, INTEGER position) -> STRING",
    "substring(STRING text, INTEGER position, INTEGER length) -> STRING",
    doc="Returns the part of a text or of bytes that begins at a position, from 1 or from the end if it is negative.",
)
def substring(text: str, position: int, count: int | None = None) -> str:
    text = units(text)
    start = _start(position, len(text))
    return of_units(text[start:] if count is None else text[start : max(start, start + count)])


@scalar(
    "substring(BYTES data, INTEGER position) -> BYTES",
    "substring(BYTES data, INTEGER position, INTEGER length) -> BYTES",
)
def substring_bytes(data: bytes, position: int, count: int | None = None) -> bytes:
    start = _start(position, len(data))
    return data[start:] if count is None else data[start : max(start, start + count)]


def _padding(value: Any, target: int, padding: Any) -> Any | None:
    if not padding or target < 0:
        return None
    missing = max(0, target - len(value))
    return (padding * (missing // len(padding) + 1))[:missing]


def _lpad(value: Any, target: int, padding: Any) -> Any | None:
    made = _padding(value, target, padding)
    return None if made is None else (made + value)[: max(target, 0)] if made else value[:target]


def _rpad(value: Any, target: int, padding: Any) -> Any | None:
    made = _padding(value, target, padding)
    return None if made is None else (value + made)[:target]


def _of_text(pad: Callable[[Any, int, Any], Any | None]) -> Callable[[str, int, str], str | None]:
    def call(text: str, target: int, padding: str) -> str | None:
        made = pad(units(text), target, units(padding))
        return None if made is None else of_units(made)

    return call


for _name, _pad, _end in (("lpad", _lpad, "start"), ("rpad", _rpad, "end")):
    _doc = f"Fills a value up at its {_end}."
    scalar(f"{_name}(STRING value, INTEGER length, STRING padding) -> STRING", doc=_doc)(_of_text(_pad))
    scalar(f"{_name}(BYTES value, INTEGER length, BYTES padding) -> BYTES", doc=_doc)(_pad)


@scalar("concat(STRING... texts) -> STRING", doc="Joins texts or bytes; nulls count as empty.", takes_nulls=True)
def concat(*texts: str | None) -> str:
    return "".join(each for each in texts if each is not None)


@scalar("concat(BYTES... data) -> BYTES", takes_nulls=True)
def concat_bytes(*data: bytes | None) -> bytes:
    return b"".join(each for each in data if each is not None)


@scalar(
    "concat_ws(STRING separator, STRING... texts) -> STRING",
    "concat_ws(BYTES separator, BYTES... data) -> BYTES",
    doc="Joins texts or bytes with a separator; nulls are left out.",
    takes_nulls=True,
)
def concat_ws(separator: Any, *values: Any) -> Any:
    if not values:
        raise ValueError("Function Concat_WS expects at least two input arguments.")
    return None if separator is None else separator.join(each for each in values if each is not None)


@scalar(
    "split(STRING text, STRING delimiter) -> ARRAY<STRING>", doc="Splits a text or bytes; by '' into single characters."
)
def split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter else list(text) or [""]


@scalar("split(BYTES data, BYTES delimiter) -> ARRAY<BYTES>")
def split_bytes(data: bytes, delimiter: bytes) -> list[bytes]:
    return data.split(delimiter) if delimiter else [data[at : at + 1] for at in range(len(data))] or [b""]


@scalar(
    "split_to_map(STRING text, STRING entries, STRING pair) -> MAP<STRING, STRING>", doc="Splits a text into a map."
)
def split_to_map(text: str, entries: str, pair: str) -> dict[str, str] | None:
    if not entries or not pair or entries == pair:
        return None
    pairs = (each.split(pair) for each in text.split(entries) if each)
    return {each[0]: each[1] for each in pairs if len(each) >= 2}


@lru_cache(maxsize=1000)
def compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(translate(pattern), regex.ASCII)
    except regex.error as error:
        raise RegexError(f"{error}: {pattern}") from None


@scalar(
    "regexp_extract(STRING pattern, STRING text) -> STRING",
    "regexp_extract(STRING pattern, STRING text, INTEGER group) -> STRING",
    doc="Returns the first match of a regular expression, or one of its groups.",
)
def regexp_extract(pattern: str, text: str, group: int = 0) -> str | None:
    made = compiled(pattern)
    found = made.search(text, timeout=SECONDS)
    return found[group] if found and 0 <= group <= made.groups else None


@scalar(
    "regexp_extract_all(STRING pattern, STRING text) -> ARRAY<STRING>",
    "regexp_extract_all(STRING pattern, STRING text, INTEGER group) -> ARRAY<STRING>",
    doc="Returns all matches of a regular expression, or one of the groups of each.",
)
def regexp_extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    made = compiled(pattern)
    if not 0 <= group <= made.groups:
        return None
    return [found[group] for found in finds(made, text, timeout=SECONDS)]


@scalar("regexp_replace(STRING text, STRING pattern, STRING new) -> STRING", doc="Replaces each match of a pattern.")
def regexp_replace(text: str, pattern: str, new: str) -> str:
    return replace_all(compiled(pattern), text, new, timeout=SECONDS)


@scalar(
    "regexp_split_to_array(STRING text, STRING pattern) -> ARRAY<STRING>",
    doc="Splits a text at the matches of a pattern.",
)
def regexp_split_to_array(text: str, pattern: str) -> list[str]:
    made = compiled(pattern)
    parts, at = list[str](), 0
    for found in finds(made, text, timeout=SECONDS):
        if found.end() > 0 or not text:  # a match of nothing at the beginning divides nothing
            parts.append(text[at : found.start()])
            at = found.end()
    parts.append(text[at:])
    if made.fullmatch(""):  # then Java leaves out the empty parts at the end
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
    return parts


MASKS = ("X", "x", "n", "-")
Masks = tuple[str | None, ...]


def _masked(text: str, masks: Masks) -> str:
    upper, lower, digit, other = masks
    by_category = {"Lu": upper, "Ll": lower, "Nd": digit}
    made = []
    for char in text:
        mask = by_category.get(unicodedata.category(char), other)
        made.append(char if mask is None else mask)
    return "".join(made)


def _masks(given: Masks) -> Masks:
    for each in given:
        if each is not None and len(each) != 1:
            raise ValueError(f"Invalid mask character. Must be only single character, but was '{each}'")
    return given or MASKS


def _mask_functions() -> None:
    masks = "STRING upper, STRING lower, STRING digit, STRING other"

    def add(name: str, cut: Callable[[str, int, Masks], str], doc: str) -> None:
        def call(text: str | None, count: int | None, *given: str | None) -> str | None:
            if text is None or count is None:
                return None
            if count < 0:
                raise ValueError("function MASK_* requires a non-negative number of characters")
            return of_units(cut(units(text), count, _masks(given)))

        lines = (
            f"{name}(STRING text, INTEGER count) -> STRING",
            f"{name}(STRING text, INTEGER count, {masks}) -> STRING",
        )
        scalar(*lines, doc=doc, takes_nulls=True)(call)

    def whole(text: str | None, *given: str | None) -> str | None:
        return None if text is None else of_units(_masked(units(text), _masks(given)))

    lines = ("mask(STRING text) -> STRING", f"mask(STRING text, {masks}) -> STRING")
    scalar(*lines, doc="Replaces letters, digits and other characters of a text by masks.", takes_nulls=True)(whole)
    add("mask_left", lambda t, n, m: _masked(t[:n], m) + t[n:], "Masks the first characters of a text.")
    add("mask_right", lambda t, n, m: t[: max(0, len(t) - n)] + _masked(t[max(0, len(t) - n) :], m), "Masks the last.")
    add("mask_keep_left", lambda t, n, m: t[:n] + _masked(t[n:], m), "Masks all but the first characters of a text.")
    add(
        "mask_keep_right",
        lambda t, n, m: _masked(t[: max(0, len(t) - n)], m) + t[max(0, len(t) - n) :],
        "Masks all but the last characters of a text.",
    )


_mask_functions()


def _stripped(text: str) -> str:
    """Return the digits of 0xAB, of X'AB' and of AB; only the first form may lack a digit."""
    if text.startswith("0x"):
        return text[2:] if len(text) % 2 == 0 else "0" + text[2:]
    return text[2:-1] if plain_re.fullmatch("[xX]'.*'", text) else text


def _lenient_base64(text: str) -> bytes:
    """Leave out what is no digit of base64; a rest that is no whole byte is lost."""
    digits = plain_re.sub("[^A-Za-z0-9+/]", "", text.partition("=")[0].replace("-", "+").replace("_", "/"))
    digits = digits[:-1] if len(digits) % 4 == 1 else digits
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


DECODERS: dict[str, Callable[[str], bytes]] = {
    "hex": binascii.unhexlify,
    "utf8": str.encode,
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": text_to_bytes,
}
ENCODERS: dict[str, Callable[[bytes], str]] = {
    "hex": lambda data: data.hex().upper(),
    "utf8": lambda data: data.decode("utf-8", "replace"),
    "ascii": lambda data: data.decode("ascii", "replace"),
    "base64": lambda data: base64.b64encode(data).decode(),
}
# ENCODE reads and writes a little differently from TO_BYTES and FROM_BYTES.
SOURCES = {**DECODERS, "hex": lambda text: binascii.unhexlify(_stripped(text)), "base64": _lenient_base64}
TARGETS = {**ENCODERS, "hex": bytes.hex}


def _encoding(table: dict[str, Any], name: str) -> Any:
    found = table.get(name.lower())
    if found is None:
        raise ValueError(f"Unknown encoding type '{name}'. Supported formats are 'hex', 'utf8', 'ascii', and 'base64'.")
    return found


@scalar("to_bytes(STRING text, STRING encoding) -> BYTES", doc="Reads bytes from a text in hex, utf8, ascii or base64.")
def to_bytes(text: str, encoding: str) -> bytes:
    return _encoding(DECODERS, encoding)(text)


@scalar(
    "from_bytes(BYTES data, STRING encoding) -> STRING", doc="Writes bytes as a text in hex, utf8, ascii or base64."
)
def from_bytes(data: bytes, encoding: str) -> str:
    return _encoding(ENCODERS, encoding)(data)


@scalar("encode(STRING text, STRING source, STRING target) -> STRING", doc="Changes the encoding of a text.")
def encode(text: str, source: str, target: str) -> str:
    read, write = SOURCES.get(source.lower()), TARGETS.get(target.lower())
    if read is None or write is None or source.lower() == target.lower():
        raise ValueError("Supported input and output encodings are: hex, utf8, ascii and base64")
    return write(read(text))


@scalar("uuid() -> STRING", doc="Returns a random UUID, or the one that is given as 16 bytes.")
def uuid_random() -> str:
    return str(uuid.uuid4())


@scalar("uuid(BYTES data) -> STRING")
def uuid_of(data: bytes) -> str | None:
    return str(uuid.UUID(bytes=data)) if len(data) == 16 else None


def _number(kind: str, size: int) -> Callable[..., Any]:
    def read(data: bytes, order: str = "BIG_ENDIAN") -> Any:
        order = order.upper()
        if order not in ("BIG_ENDIAN", "LITTLE_ENDIAN"):
            raise ValueError(f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order '{order}'.")
        if len(data) != size:
            raise ValueError(f"Number of bytes must be equal to {size}, but found {len(data)}")
        return struct.unpack(("<" if order == "LITTLE_ENDIAN" else ">") + kind, data)[0]

    return read


for _name, _type, _code, _size in (
    ("int", "INTEGER", "i", 4),
    ("bigint", "BIGINT", "q", 8),
    ("double", "DOUBLE", "d", 8),
):
    scalar(
        f"{_name}_from_bytes(BYTES data) -> {_type}",
        f"{_name}_from_bytes(BYTES data, STRING order) -> {_type}",
        doc=f"Reads {_size} bytes as a number, BIG_ENDIAN unless LITTLE_ENDIAN is given.",
    )(_number(_code, _size))

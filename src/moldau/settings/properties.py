"""Java's properties format, and `key=value` arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from moldau.settings.values import SettingError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CODES = {plain: f"\\{letter}" for letter, plain in _ESCAPES.items()} | {"\\": "\\\\"}


def properties(text: str) -> dict[str, str]:
    """Return the pairs of a Java properties text; a later one wins."""
    pairs: dict[str, str] = {}
    for line in _logical_lines(text):
        if match := re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL):
            pairs[_unescaped(match[1])] = _unescaped(match[2])
    return pairs


def read_properties(path: str) -> dict[str, str]:
    """Return the pairs of a properties file in UTF-8, or in Java's Latin-1 if it is not UTF-8."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return properties(data.decode())
    except UnicodeDecodeError:
        return properties(data.decode("latin-1"))


def write_properties(pairs: Mapping[str, str]) -> str:
    """Return a text of which `properties` makes the same pairs."""
    return "".join(f"{_escaped(name, ' =:#!')}={_escaped(text)}\n" for name, text in pairs.items())


def assignment(text: str) -> tuple[str, str]:
    """Return the pair of a `key=value` argument."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SettingError(text, None, "a setting is given as key=value")
    return key.strip(), value.strip()


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, with continuations (an odd number of backslashes at the end) joined."""
    joined, continues = "", False
    lines = re.split(r"\r\n|\r|\n", text)
    for line in lines if lines[-1] else lines[:-1]:
        line = line.lstrip(" \t\f")
        if not joined and (not line or line[0] in "#!"):
            continues = False
            continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if continues else line
        if not continues:
            yield joined
            joined = ""
    if continues:
        yield joined


def _escaped(text: str, more: str = "") -> str:
    made = "".join(_CODES.get(char) or (f"\\{char}" if char in more else char) for char in text)
    return f"\\{made}" if made.startswith(" ") else made


def _unescaped(text: str) -> str:
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _plain, text, flags=re.DOTALL) if "\\" in text else text


def _plain(escape: re.Match[str]) -> str:
    body = escape[1]
    if body == "u":
        raise SettingError(escape.string, None, "\\u needs four hexadecimal digits after it")
    return chr(int(body[1:], 16)) if len(body) == 5 else _ESCAPES.get(body, body)

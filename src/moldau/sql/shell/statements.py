"""Texts of statements as the shell sees them: where each ends, and what its first words are.

A text is not parsed here: the server may know statements that we do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z)) | (?P<text>'(?:[^']|'')*(?:'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z))
      | (?P<end>;) | (?P<word>[A-Za-z_][A-Za-z0-9_@-]*) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"`((?:[^`]|``)*)`|[<>,(]|[)]")


def split(text: str) -> tuple[list[str], str]:
    """Return the statements of a text without their semicolons, and what follows the last semicolon."""
    statements, start = [], 0
    for match in _PIECE.finditer(text):
        if match.lastgroup == "end":
            if words(text[start : match.start()]):
                statements.append(text[start : match.start()].strip())
            start = match.end()
    rest = text[start:].strip()
    return statements, rest if any(words(rest)) else ""


def placed(text: str) -> Iterator[str]:
    """Yield the statements of a text with their semicolons, each where it stands: after blank lines and blanks.

    Parsed one by one they can use variables that those before define, and faults still have their place in the text.
    """
    start = 0
    for match in _PIECE.finditer(text):
        if match.lastgroup == "end":
            if words(text[start : match.start()], 1):
                yield _blank(text, start) + text[start : match.end()]
            start = match.end()
    if words(text[start:], 1):
        yield _blank(text, start) + text[start:]


def _blank(text: str, start: int) -> str:
    return "\n" * text.count("\n", 0, start) + " " * (start - text.rfind("\n", 0, start) - 1)


def words(text: str, most: int = 4) -> list[str]:
    """Return the first words of a statement in upper case. A text in quotes or a symbol counts as one."""
    found: list[str] = []
    for match in _PIECE.finditer(text):
        if match.lastgroup == "comment" or match.group().isspace():
            continue
        found.append(match.group().upper())
        if len(found) == most:
            break
    return found


def is_query(statement: str) -> bool:
    """Return whether a statement is answered in rows: SELECT, WITH or PRINT."""
    return words(statement, 1)[:1] in (["SELECT"], ["WITH"], ["PRINT"])


def unquoted(text: str) -> str:
    """Return a word of a command without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def column_names(schema: str) -> list[str]:
    """Return the names of the columns in the schema of an answer: "`ID` STRING KEY, `V` STRUCT<`A` INTEGER>"."""
    return list(_column_names(schema))


def _column_names(schema: str) -> Iterator[str]:
    depth, expected = 0, True
    for match in _NAME.finditer(schema):
        mark = match.group()
        if mark in "<(":
            depth += 1
        elif mark in ">)":
            depth -= 1
        elif depth == 0 and mark == ",":
            expected = True
        elif depth == 0 and expected:
            yield match.group(1).replace("``", "`")
            expected = False

"""The tokens of a .proto text, and the reader that walks over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from .parsed import Limits, SchemaError

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>\.\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<symbol>[-+=;:,.(){}\[\]<>/])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
NAMED = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # string, number, word, symbol; "" at the end
    text: str
    at: int


def tokens(text: str, limits: Limits) -> list[Token]:
    found: list[Token] = []
    position = depth = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise SchemaError(f"unexpected {text[position]!r} {place(text, position)}")
        position = match.end()
        if match.lastgroup == "skip":
            continue
        found.append(Token(match.lastgroup or "", match.group(), match.start()))
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match.group(), 0)
        if depth > limits.depth:
            raise SchemaError(f"the schema nests deeper than {limits.depth} levels {place(text, match.start())}")
    return found


def place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"in line {line}, column {position - text.rfind(chr(10), 0, position)}"


def unescaped(literal: str) -> str:
    """Return what a quoted string stands for. Escapes are bytes; what is not UTF-8 becomes lone surrogates."""
    encoded, position = b"", 1
    for match in ESCAPE.finditer(literal, 1, len(literal) - 1):
        encoded += literal[position : match.start()].encode()
        position = match.end()
        hexadecimal, octal, short, long, named = match.groups()
        if hexadecimal or octal:
            encoded += bytes([int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 255])
        elif short or long:
            encoded += chr(min(int(short or long, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
        else:
            encoded += NAMED.get(named) or named.encode()
    encoded += literal[position:-1].encode()
    return encoded.decode("utf-8", "surrogateescape")


@dataclass(slots=True)
class Reader:
    """Walks over tokens, one look ahead, and says where it did not find what it expected."""

    text: str
    tokens: list[Token]
    position: int = 0

    def peek(self, ahead: int = 0) -> Token:
        position = self.position + ahead
        return self.tokens[position] if position < len(self.tokens) else Token("", "", len(self.text))

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def accept(self, *texts: str) -> bool:
        token = self.peek()
        if token.kind in ("word", "symbol") and token.text in texts:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"{text!r}")

    def statements(self) -> Iterator[None]:
        """Walk over a body in braces: each step stands before a statement. Empty statements are passed over."""
        self.expect("{")
        while not self.accept("}"):
            if not self.accept(";"):
                yield

    def word(self, what: str) -> str:
        if self.peek().kind != "word":
            self.fail(what)
        return self.next().text

    def name(self, what: str) -> str:
        """Read a name: parts with dots between, and perhaps one before."""
        found = "." if self.accept(".") else ""
        found += self.word(what)
        while self.peek().text == "." and self.peek().kind == "symbol":
            self.position += 1
            found += "." + self.word(what)
        return found

    def string(self, what: str) -> str:
        if self.peek().kind != "string":
            self.fail(what)
        found = ""
        while self.peek().kind == "string":
            found += unescaped(self.next().text)
        return found

    def integer(self, what: str) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.peek()
        digits = token.text.lower()
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        try:
            number = int(digits, 8) if octal else int(digits, 0)
        except ValueError:
            self.fail(what)
        self.position += 1
        return sign * number

    def fail(self, expected: str) -> NoReturn:
        token = self.peek()
        found = repr(token.text[:50]) if token.kind else "the end"
        raise SchemaError(f"expected {expected} but found {found} {place(self.text, token.at)}")

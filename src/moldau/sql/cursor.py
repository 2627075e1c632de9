"""A place in the tokens of a text: what the parsers look at, take, and complain about."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import NoReturn

from moldau.sql.errors import ParseError
from moldau.sql.lexer import NON_RESERVED, RESERVED, Token
from moldau.sql.tree import Position

WORDS = ("name", "symbol")  # the kinds of tokens that are keywords or symbols
MAX_NESTING = 100  # of brackets, CASEs and types in each other


@dataclass(slots=True)
class Cursor:
    """The tokens and the place in them. `bound` holds the names that lambdas around this place bind."""

    text: str
    tokens: list[Token]
    place: int = 0
    depth: int = 0
    first: int = 0  # the token with which the present statement begins
    bound: list[frozenset[str]] = field(default_factory=list)

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    @property
    def at(self) -> Position:
        token = self.tokens[self.place]
        return token.line, token.column

    def ahead(self, count: int = 1) -> Token:
        place = self.place + count
        return self.tokens[place] if place < len(self.tokens) else self.tokens[-1]

    def next(self) -> Token:
        token = self.tokens[self.place]
        if token.kind != "end":
            self.place += 1
        return token

    def sees(self, *words: str) -> bool:
        """Tell whether the next tokens are these keywords or symbols."""
        place, tokens = self.place, self.tokens
        for word in words:
            token = tokens[place]
            if token.value != word or token.kind not in WORDS:
                return False
            place += 1  # what was seen is not the end, so there is a token after it
        return True

    def takes(self, *words: str) -> bool:
        """Step over these keywords or symbols if they come next."""
        token = self.tokens[self.place]
        if token.value != words[0] or token.kind not in WORDS:  # most often it ends here
            return False
        if len(words) > 1 and not self.sees(*words):
            return False
        self.place += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.takes(word):
                self.fail(f"'{word}'")

    def name(self) -> str:
        """Take an identifier: a word that is not reserved, or a quoted one."""
        token = self.now
        if token.kind == "quoted" or (token.kind == "name" and not token.reserved):
            self.place += 1
            return token.value
        self.fail("identifier")
        return None

    def string(self) -> str:
        token = self.now
        if token.kind != "string":
            self.fail("STRING")
        self.place += 1
        return token.value

    def integer(self) -> int:
        token = self.now
        if token.kind != "integer":
            self.fail("INTEGER_VALUE")
        self.place += 1
        return int(token.value)

    def enter(self) -> None:
        """Go one level deeper; `leave` comes back."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            line, column = self.at
            raise ParseError(f"line {line}:{column}: Expressions are nested more than {MAX_NESTING} levels deep.")

    def leave(self) -> None:
        self.depth -= 1

    def statement_text(self) -> str:
        """Give the text of the present statement with its semicolon, for messages."""
        last = self.place
        while self.tokens[last].kind != "end" and self.tokens[last].raw != ";":
            last += 1
        return self.text[self.tokens[self.first].start : self.tokens[last].end]

    def fail(self, expected: str) -> NoReturn:
        """Refuse the present token, naming what would have been right."""
        token = self.now
        if token.reserved and expected == "identifier":
            hint = (
                f'"{token.raw}" is a reserved keyword and it can\'t be used as an identifier. '
                f"You can use it as an identifier by escaping it as '{token.raw}' "
            )
        else:
            hint = f"Expecting {expected}"
        self.refuse(hint, token)

    def refuse(self, hint: str, token: Token | None = None) -> NoReturn:
        token = token or self.now
        near = f"Syntax error at or near '{token.raw}' at line {token.line}:{token.column}"
        raise ParseError(
            f"line {token.line}:{token.column}: Syntax Error\n{hint}\nStatement: {self.statement_text()}\n{near}"
        )

    def unknown_statement(self) -> NoReturn:
        token = self.now
        close = difflib.get_close_matches(token.value, sorted(RESERVED | NON_RESERVED), 1)
        also = f"\nDid you mean '{close[0]}'?" if close and close[0] != token.value else ""
        self.refuse(f"Unknown statement '{token.raw}'{also}", token)

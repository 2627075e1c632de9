"""Names of subjects: `orders-value`, or `:.context:orders-value` in a context of its own.

A name is always kept in the form in which it is written here: without a prefix in the default context, with one in any
other. `:.context:` alone is the context, and `:.__GLOBAL:` is what all contexts fall back to.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

DEFAULT = "."
WILDCARD = ":*:"
GLOBAL = ":.__GLOBAL:"
RESERVED = ("__GLOBAL", "__EMPTY")


class Name(NamedTuple):
    """A subject in its context, which begins with a dot."""

    context: str
    subject: str

    def __str__(self) -> str:
        return prefix_of(self.context) + self.subject


def parse(text: str) -> Name:
    """Split a name into its parts."""
    if text.startswith(":."):
        context, _, subject = text[1:].partition(":")
        return Name(context, subject)
    if text.startswith(WILDCARD):
        return Name("*", text[len(WILDCARD) :])
    return Name(DEFAULT, text)


def normal(text: str) -> str:
    """Return the form in which a name is kept: `:.:orders` is `orders`."""
    return str(parse(text))


def prefix_of(context: str) -> str:
    """Return what stands before the subjects of a context."""
    return "" if context == DEFAULT else f":{context}:"


def context_of(text: str) -> str:
    return parse(text).context


def delimited(context: str) -> str:
    """Turn a context as people write it (`ctx`, `.ctx`, `:.ctx:`) into a prefix; ValueError with a colon inside."""
    bare = context.removeprefix(":").removesuffix(":")
    if ":" in bare:
        raise ValueError(f"Context name '{bare}' cannot contain a colon")
    return prefix_of(bare if bare.startswith(".") else f".{bare}")


def within(parent: str, text: str) -> str:
    """Resolve a name in a schema or setting of `parent`: without a context of its own it is in the parent's."""
    name, context = parse(text), context_of(parent)
    return str(Name(context, name.subject)) if name.context == DEFAULT else str(name)


def is_top(text: str | None) -> bool:
    """Say whether this is no subject, but the default context itself."""
    return not text or parse(text) == (DEFAULT, "")


def is_context(text: str | None) -> bool:
    return not text or not parse(text).subject


def is_valid(text: str, *, for_settings: bool = False, may_be_empty: bool = True) -> bool:
    """Say whether schemas (or just settings) may be kept under a name."""
    if any(unicodedata.category(sign) == "Cc" for sign in text):
        return False
    context, subject = parse(text)
    if subject in RESERVED or (not may_be_empty and subject in ("", "*")):
        return False
    return for_settings or prefix_of(context) != GLOBAL


def matches(subject: str, wanted: str | None) -> bool:
    """Say whether a subject is the one wanted, or in the context wanted; None wants all."""
    if wanted is None or subject == wanted:
        return True
    return is_context(wanted) and (wanted == GLOBAL or context_of(subject) == context_of(wanted))

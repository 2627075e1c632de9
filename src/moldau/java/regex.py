"""Java's regular expressions on Python's: a pattern is translated, or refused if Python has no equivalent.

What differs: names of groups, `\\Q..\\E`, `\\h`, `\\R`, `\\p{..}`, classes within classes and their intersections,
flags that begin in the middle, and that `.`, `$` and `\\Z` know more line terminators. Digits, word characters, blanks
and case are those of ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TERMINATOR = "\\n\\r\\u0085\\u2028\\u2029"
DOLLAR = f"(?:(?=(?:\\r\\n|[{TERMINATOR}])?\\Z)(?<!\\r(?=\\n)))"
BLANK = " \\t\\u00a0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000"
PROPERTIES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t\\n\\x0b\\f\\r",
}
ESCAPES = {
    "d": "0-9",
    "w": "a-zA-Z_0-9",
    "s": " \\t\\n\\x0b\\f\\r",
    "h": BLANK,
    "v": "\\n\\x0b\\f\\r\\u0085\\u2028\\u2029",
}
CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f", "a": "\\x07", "e": "\\x1b"}
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_REPEAT = re.compile(r"\{\d+(,\d*)?\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")


class RegexError(ValueError):
    """A pattern that Java refuses, or that Python cannot execute."""


def translate(pattern: str) -> str:
    """Return a pattern of Java as one of Python, to be compiled for ASCII."""
    return _Translation(pattern).run()


def compile_regex(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a pattern of Java."""
    try:
        return re.compile(translate(pattern), re.ASCII | (re.IGNORECASE if ignore_case else 0))
    except re.error as error:
        raise RegexError(f"{error.msg} near index {error.pos}: {pattern}") from None


@dataclass(slots=True)
class _Translation:
    text: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    # For each open group: the flags that began in its middle, as the text that opens them.
    open_flags: list[list[str]] = field(default_factory=lambda: [[]])
    dot_all: list[bool] = field(default_factory=lambda: [False])  # for each open group
    groups: int = 0
    references: dict[int, int] = field(default_factory=dict[int, int])  # place in `out` -> group

    def run(self) -> str:
        while self.at < len(self.text):
            self._next()
        if len(self.open_flags) > 1:
            raise RegexError(f"Unclosed group near index {len(self.text)}: {self.text}")
        for place, group in self.references.items():
            if group > self.groups:
                self.out[place] = "(?!)"  # nothing equals a group that is not there
        return "".join(self.out) + ")" * len(self.open_flags[0])

    def _refuse(self, what: str) -> RegexError:
        return RegexError(f"{what} near index {self.at}: {self.text}")

    def _next(self) -> None:
        char = self.text[self.at]
        if char == "\\":
            self.out.append(self._escape())
        elif char == "[":
            self.at += 1
            self.out.append(_class_text(self._class()))
        elif char == "(":
            self._group()
        elif char == ")":
            if len(self.open_flags) == 1:
                raise self._refuse("Unmatched closing ')'")
            self.dot_all.pop()
            self._add(")" * len(self.open_flags.pop()) + ")")
        elif char == "|":
            flags = self.open_flags[-1]
            self._add(")" * len(flags) + "|" + "".join(flags))
        elif char == "{":
            repeat = _REPEAT.match(self.text, self.at)
            if repeat is None:
                raise self._refuse("Illegal repetition")
            self.out.append(repeat[0])
            self.at = repeat.end()
        else:
            dot = "[\\s\\S]" if self.dot_all[-1] else f"[^{TERMINATOR}]"
            self._add({".": dot, "$": DOLLAR, "]": "\\]", "}": "\\}"}.get(char, char))

    def _add(self, text: str) -> None:
        self.out.append(text)
        self.at += 1

    def _group(self) -> None:
        rest = self.text[self.at :]
        flags = _FLAGS.match(rest)
        if flags and (flags[1] or flags[2] or flags[3] == ":"):
            self._flags(flags)
            return
        opening = next((each for each in ("(?=", "(?!", "(?>", "(?<=", "(?<!") if rest.startswith(each)), "")
        if not opening and rest.startswith("(?<"):
            name = _GROUP_NAME.match(rest, 3)
            if name is None or rest[name.end() : name.end() + 1] != ">":
                raise self._refuse("Illegal group name")
            opened = f"(?P<{name[0]}>"
            if opened in self.out:
                raise self._refuse(f"Named capturing group <{name[0]}> is already defined")
            self.groups += 1
            self.out.append(opened)
            self.at += name.end() + 1
        elif not opening and rest.startswith("(?"):
            raise self._refuse("Unknown inline modifier")
        else:
            self.groups += not opening
            self.out.append(opening or "(")
            self.at += len(opening or "(")
        self.open_flags.append([])
        self.dot_all.append(self.dot_all[-1])

    def _flags(self, flags: re.Match[str]) -> None:
        on, off = flags[1], (flags[2] or "-")[1:]
        if set(on + off) - set("is"):
            raise self._refuse(f"The flags {''.join(sorted(set(on + off) - set('is')))} are not supported")
        dot_all = "s" in on or (self.dot_all[-1] and "s" not in off)
        scoped = "(?i:" if "i" in on else "(?-i:" if "i" in off else "(?:"
        self.out.append(scoped)
        self.at += flags.end()
        if flags[3] == ":":
            self.open_flags.append([])
            self.dot_all.append(dot_all)
        else:
            self.open_flags[-1].append(scoped)
            self.dot_all[-1] = dot_all

    def _escape(self) -> str:
        """Translate an escape outside a class."""
        char = self.text[self.at + 1 : self.at + 2]
        if char == "Q":
            return "".join(map(re.escape, self._quoted()))
        if char == "k":
            name = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at + 2)
            if name is None:
                raise self._refuse("\\k is not followed by '<' for named capturing group")
            self.at = name.end()
            return f"(?P={name[1]})"
        if char and char in "123456789":
            self.at += 2
            self.references[len(self.out)] = int(char)
            return f"(?:\\{char})"
        if char in ("A", "b", "B", "z", "Z", "G", "R", "X"):
            if char in "GX":
                raise self._refuse(f"\\{char} is not supported")
            self.at += 2
            # Java does not go back into a line break that is repeated.
            line_break = "(?>" if self.text[self.at : self.at + 1] in tuple("{*+?") else "(?:"
            line_break += f"\\r\\n|[\\x0b\\f{TERMINATOR}])"
            return {"z": "\\Z", "Z": DOLLAR, "R": line_break}.get(char, f"\\{char}")
        return _class_text(self._class_escape())

    def _quoted(self) -> str:
        end = self.text.find("\\E", self.at)
        quoted = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
        self.at = end + 2 if end >= 0 else len(self.text)
        return quoted

    def _class_escape(self) -> _Set:
        """Read an escape that stands for one character or a set of them."""
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not char:
            raise self._refuse("Unexpected internal error")
        if char.lower() in ESCAPES:
            return _Set(ESCAPES[char.lower()], char.isupper())
        if char in "pP":
            return self._property(char == "P")
        if char in CONTROLS:
            return _Set(CONTROLS[char])
        if char in "xu0c":
            return _Set(_literal(chr(self._code(char))))
        if char.isalnum():
            raise self._refuse("Illegal/unsupported escape sequence")
        return _Set(_literal(char))

    def _code(self, kind: str) -> int:
        forms = {"x": r"\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2})", "u": r"([0-9a-fA-F]{4})()", "0": r"([0-3]?[0-7]{1,2})()"}
        if kind == "c":
            self.at += 1
            return ord(self.text[self.at - 1 : self.at] or "\0") ^ 64
        found = re.compile(forms[kind]).match(self.text, self.at)
        if found is None:
            raise self._refuse("Illegal escape sequence")
        self.at = found.end()
        return int(found[1] or found[2], 8 if kind == "0" else 16)

    def _property(self, negated: bool) -> _Set:
        found = re.compile(r"\{(\w+)\}|(\w)").match(self.text, self.at)
        name = found and (found[1] or found[2])
        if found is None or name not in PROPERTIES:
            raise self._refuse(f"The character property {name or ''} is not supported")
        self.at = found.end()
        return _Set(PROPERTIES[name], negated)

    def _class(self) -> _Set:
        """Read a class after its bracket, with the classes inside it."""
        negated = self.text.startswith("^", self.at)
        self.at += negated
        terms: list[list[_Set]] = [[]]
        first = True
        while True:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise self._refuse("Unclosed character class")
            if char == "]" and not (first and not terms[-1] and len(terms) == 1):
                self.at += 1
                break
            if self.text.startswith("&&", self.at):
                terms.append([])
                self.at += 2
            else:
                terms[-1].extend(self._members())
            first = False
        union = [_union(each) for each in terms if each]
        if not union:
            raise self._refuse("Bad class syntax")
        result = union[0]
        for each in union[1:]:
            result = _Set(f"(?={_class_text(result)}){_class_text(each)}", complex=True)
        if not negated:
            return result
        if result.complex:
            return _Set(f"(?!{result.members})[\\s\\S]", complex=True)
        return _Set(result.members, not result.negated)

    def _members(self) -> Iterator[_Set]:
        char = self.text[self.at]
        if char == "[":
            self.at += 1
            yield self._class()
            return
        if char == "\\" and self.text.startswith("\\Q", self.at):
            yield from (_Set(_literal(each)) for each in self._quoted())
            return
        low = self._single()
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", "[", ""):
            self.at += 1
            high = self._single()
            yield _Set(f"{low.members}-{high.members}")
            return
        yield low

    def _single(self) -> _Set:
        if self.text[self.at] == "\\":
            return self._class_escape()
        self.at += 1
        return _Set(_literal(self.text[self.at - 1]))


@dataclass(frozen=True, slots=True)
class _Set:
    """The inside of a class; or, if complex, an expression that consumes one character."""

    members: str
    negated: bool = False
    complex: bool = False


def _literal(char: str) -> str:
    return "\\" + char if char in "\\]^-[&~|" else char


def _class_text(found: _Set) -> str:
    if found.complex:
        return f"(?:{found.members})"
    return f"[{'^' if found.negated else ''}{found.members}]"


def _union(sets: list[_Set]) -> _Set:
    plain = "".join(each.members for each in sets if not each.negated and not each.complex)
    others = [_class_text(each) for each in sets if each.negated or each.complex]
    if not others:
        return _Set(plain)
    if len(sets) == 1:
        return sets[0]
    return _Set("|".join(([f"[{plain}]"] if plain else []) + others), complex=True)


def finds(compiled: Any, text: str, **limits: Any) -> Iterator[Any]:
    """Yield the matches as Matcher.find does: behind an empty one the next is looked for a character further."""
    at = 0
    while at <= len(text) and (found := compiled.search(text, at, **limits)) is not None:
        yield found
        at = found.end() + (found.end() == found.start())


def replace_all(compiled: Any, text: str, replacement: str, **limits: Any) -> str:
    """Replace all matches as Matcher.replaceAll does."""
    made, at = list[str](), 0
    for found in finds(compiled, text, **limits):
        made += [text[at : found.start()], expand(found, replacement)]
        at = found.end()
    return "".join([*made, text[at:]])


def replace_first(regex: re.Pattern[str], text: str, replacement: str) -> str:
    """Replace the first match as Matcher.replaceFirst does, with `$1`, `${name}` and backslashes."""
    found = regex.search(text)
    if found is None:
        return text
    return text[: found.start()] + expand(found, replacement) + text[found.end() :]


def expand(match: Any, replacement: str) -> str:
    """Fill the groups of a match into a replacement; a RegexError is an IllegalArgumentException or worse."""
    made, at = "", 0
    while at < len(replacement):
        char = replacement[at]
        if char == "\\":
            if at + 1 == len(replacement):
                raise RegexError("character to be escaped is missing")
            made, at = made + replacement[at + 1], at + 2
        elif char == "$":
            group, at = _group_reference(match, replacement, at + 1)
            made += match[group] or ""
        else:
            made, at = made + char, at + 1
    return made


def _group_reference(match: Any, text: str, at: int) -> tuple[int | str, int]:
    named = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, at)
    if named:
        if named[1] not in match.re.groupindex:
            raise RegexError(f"No group with name {{{named[1]}}}")
        return named[1], named.end()
    if at >= len(text) or text[at] not in "0123456789":
        raise RegexError("Illegal group reference")
    group, at = int(text[at]), at + 1
    if group > match.re.groups:
        raise RegexError(f"No group {group}")
    while at < len(text) and text[at] in "0123456789" and group * 10 + int(text[at]) <= match.re.groups:
        group, at = group * 10 + int(text[at]), at + 1
    return group, at

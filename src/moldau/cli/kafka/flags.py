"""The flags of Kafka's tools as rows, and the parser of their command lines.

Most of Kafka's tools follow the rules of joptsimple: `--flag value` and `--flag=value`, one dash or two, no
abbreviations, flags in any order, and a value of the wrong type fails only when it is read. What flags mean is not
known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

IS_DEPRECATED = "Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
HAS_BEEN_DEPRECATED = "Option --{old} has been deprecated and will be removed in a future version. Use --{new} instead."


class Mistake(Exception):
    """An error in a command line that cannot be parsed."""


class Usage(Exception):
    """An error in a command line that asks for the impossible; it is reported together with all flags."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag. `argument` describes its value and is empty for a switch; `refused` says why Moldau refuses it."""

    name: str
    argument: str = ""
    help: str = ""
    type: type[int] | type[str] | type[float] = str
    default: Any = None
    optional: bool = False  # the argument may be omitted
    required: bool = False
    separator: str = ""  # between several values in one argument
    beside: tuple[str, ...] = ()  # one of these must be given too
    many: bool = False  # several arguments follow it
    short: str = ""  # one letter for the same
    since: str = ""
    deprecated: str = ""  # the flag to use instead
    alias: bool = False  # an old name: its values count as those of the flag to use instead, unless that is given too
    refused: str = ""

    def parse(self, text: str) -> Any:
        try:
            return self.type(text)
        except ValueError:
            raise Mistake(f"Cannot parse argument '{text}' of option {self.name}") from None


COMMON = (Flag("help", help="Show the flags."), Flag("version", help="Show the version of Kafka that this matches."))


def report_mistake(tool: Tool, sentence: str) -> int:
    """Report a command line that cannot be parsed, as most tools do; return the exit code."""
    print(sentence, file=sys.stderr)
    return 1


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its purpose, its flags, and the function that runs it and returns the exit code."""

    name: str
    about: str
    flags: tuple[Flag, ...]
    run: Callable[[Options], int]
    mistaken: Callable[[Tool, str], int] = report_mistake
    warning: str = IS_DEPRECATED

    def start(self, arguments: list[str]) -> int:
        from moldau.cli.kafka.running import run_tool

        return run_tool(self, arguments)

    def flag(self, name: str) -> Flag | None:
        return next((flag for flag in (*self.flags, *COMMON) if flag.name == name), None)


class Options:
    """The given flags: `options["topic"]` is the value or the default, `name in options` says whether it was given."""

    __slots__ = ("_found", "arguments", "command", "tool")

    def __init__(
        self, tool: Tool, found: dict[str, list[str]], arguments: Sequence[str], command: Sequence[str]
    ) -> None:
        self.tool = tool
        self._found = found
        self.arguments = tuple(arguments)  # words that are not flags
        self.command = tuple(command)  # the whole command line

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Any:
        """Return the single value of a flag."""
        values = self.all(name)
        if len(values) > 1:
            raise Mistake(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else self._row(name).default

    def all(self, name: str) -> list[Any]:
        """Return all values of a flag, in the given order."""
        flag = self._row(name)
        texts = self._found.get(name, [])
        if flag.separator:
            texts = [part for text in texts for part in text.split(flag.separator)]
        return [flag.parse(text) for text in texts]

    def given(self, *names: str) -> list[str]:
        """Return those of the flags that were given."""
        return [name for name in names if name in self._found]

    def _row(self, name: str) -> Flag:
        flag = self.tool.flag(name)
        assert flag is not None, f"{self.tool.name} has no flag {name}"
        return flag


def read(tool: Tool, arguments: Sequence[str]) -> Options:
    """Parse a command line."""
    given: dict[str, list[str]] = {}
    others: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        token = rest.pop()
        if token == "--":
            others += reversed(rest)
            break
        if len(token) > 1 and token[0] == "-":
            _take(tool, token, rest, given)
        else:
            others.append(token)
    for flag in tool.flags:
        if flag.alias and flag.name in given:
            given.setdefault(flag.deprecated, given[flag.name])
    if not {"help", "version"} & given.keys() and (lacking := _lacking(tool, given)):
        raise Mistake(f"Missing required option(s) [{', '.join(lacking)}]")
    if lost := _lost(tool, given):
        raise Mistake(f"Option(s) [{', '.join(lost)}] are unavailable given other options on the command line")
    return Options(tool, given, others, arguments)


def _take(tool: Tool, token: str, rest: list[str], given: dict[str, list[str]]) -> None:
    name, equals, value = token.lstrip("-").partition("=") if token.startswith("--") else token[1:].partition("=")
    flag = tool.flag(name)
    if flag is None:
        raise Mistake(_unknown(tool, name) if token.startswith("--") else f"{name[:1]} is not a recognized option")
    if flag.refused:
        raise Mistake(f"Option {name} is not supported: {flag.refused}")
    values = given.setdefault(name, [])
    if not flag.argument:
        return
    if equals:
        values.append(value)
    elif not flag.optional:
        if not rest:
            raise Mistake(f"Option {name} requires an argument")
        values.append(rest.pop())
    elif rest and not (rest[-1].startswith("-") and len(rest[-1]) > 1):
        values.append(rest.pop())


def _unknown(tool: Tool, name: str) -> str:
    similar = get_close_matches(name, [flag.name for flag in tool.flags], 1)
    return f"{name} is not a recognized option" + (f"; did you mean --{similar[0]}?" if similar else "")


def _lacking(tool: Tool, given: dict[str, list[str]]) -> list[str]:
    return [flag.name for flag in tool.flags if flag.required and flag.name not in given]


def _lost(tool: Tool, given: dict[str, list[str]]) -> list[str]:
    rows = (flag for flag in tool.flags if flag.beside and flag.name in given)
    return [flag.name for flag in rows if not given.keys() & set(flag.beside)]


def require(options: Options, *names: str) -> None:
    """Refuse a command line that lacks one of the flags."""
    for name in names:
        if name not in options:
            raise Usage(f'Missing required argument "[{name}]"')


def forbid(options: Options, used: str, others: Iterable[str]) -> None:
    """Refuse a command line with both a flag and one of the others."""
    if used in options:
        for name in options.given(*(other for other in others if other != used)):
            raise Usage(f'Option "[{used}]" can\'t be used with option "[{name}]"')


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` arguments; the value may be missing."""
    return {key: value for key, _, value in (text.partition("=") for text in texts)}

"""Who may read and write which subjects: lines of a file, `name: read orders-*, write orders-value`.

`*` as the name stands for every caller, and in a pattern for any letters. Who may write a subject may read it. Admins
may do everything. Without a file, roles alone decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from moldau.http import ADMIN, Caller
from moldau.http.users import Reread
from moldau.registry.names import normal
from moldau.settings import SettingError, read_properties

SETTING = "authorization.subjects.file"
READ, WRITE = "Read", "Write"
EVERYBODY = "*"
WORDS = {"read": (READ,), "write": (READ, WRITE)}


class Rule(NamedTuple):
    """What may be done with the subjects that fit a pattern."""

    operations: tuple[str, ...]
    pattern: re.Pattern[str]


def read_rules(path: str) -> Mapping[str, list[Rule]]:
    """Read the rules of a file by the names of callers; SettingError if a line is wrong."""
    try:
        rows = read_properties(path)
    except OSError as error:
        raise SettingError(SETTING, path, error.strerror or "it cannot be read") from None
    return {name: [_rule(text, path) for text in line.split(",")] for name, line in rows.items()}


def _rule(text: str, path: str) -> Rule:
    word, _, pattern = text.strip().partition(" ")
    if word.lower() not in WORDS or not pattern.strip():
        raise SettingError(SETTING, path, f"a rule is written `read PATTERN` or `write PATTERN`, not {text.strip()!r}")
    parts = map(re.escape, pattern.strip().split("*"))
    return Rule(WORDS[word.lower()], re.compile(".*".join(parts), re.DOTALL))


class SubjectRules:
    """The rules of a file as it is now; without one everything is allowed."""

    def __init__(self, path: str) -> None:
        self._rules = Reread(path, read_rules) if path else None

    def allow(self, caller: Caller, operation: str, subject: str) -> bool:
        """Say whether a caller may do something with a subject."""
        if self._rules is None or caller.may(ADMIN):
            return True
        known, name = self._rules.content, normal(subject)
        rules = (*known.get(caller.name, ()), *known.get(EVERYBODY, ()))
        return any(operation in rule.operations and rule.pattern.fullmatch(name) for rule in rules)

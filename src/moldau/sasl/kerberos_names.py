"""Names of Kerberos principals, and what `sasl.kerberos.principal.to.local.rules` makes of them.

A rule is `RULE:[n:format](pattern)s/from/to/g/L`, of which all but the format may be missing, or `DEFAULT`. It is for
names with n parts before the realm; in the format, `$0` is the realm and `$1` the first part. Patterns match in linear
time; they have no back references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import re2

from moldau.settings import SettingError

SETTING = "sasl.kerberos.principal.to.local.rules"
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"RULE:\[(?P<parts>\d{1,9}):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<find>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_FORMAT = re.compile(r"\$(\d+)")
_REFERENCE = re.compile(r"\\(.)|\$(\d)")
_NOT_SIMPLE = re.compile(r"[/@]")


class NoLocalName(Exception):
    """A principal that no rule gives a name to."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; without a format it is DEFAULT."""

    parts: int = 0
    format: str | None = None
    match: re2._Regexp | None = None  # pyright: ignore[reportPrivateUsage]
    find: re2._Regexp | None = None  # pyright: ignore[reportPrivateUsage]
    to: str = ""
    is_global: bool = False
    case: str = ""

    def applied(self, name: tuple[str, ...], default_realm: str) -> str | None:
        """Return the local name for a realm and the parts of a name; None if the rule is for others."""
        if self.format is None:
            return name[1] if name[0] == default_realm else None
        if len(name) - 1 != self.parts:
            return None
        base = _FORMAT.sub(lambda one: name[int(one[1])], self.format)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        if self.find is not None:
            base = self.find.sub(self._replacement, base, 0 if self.is_global else 1)
        return {"L": base.lower(), "U": base.upper()}.get(self.case, base)

    def _replacement(self, found: re2._Match) -> str:  # pyright: ignore[reportPrivateUsage]
        return _REFERENCE.sub(lambda one: one[1] or found[int(one[2])] or "", self.to)


class LocalNames:
    """The rules, of which the first that fits decides."""

    def __init__(self, rules: Iterable[str], default_realm: str) -> None:
        self._rules = [_rule(text.strip()) for text in rules]
        self._default_realm = default_realm

    def of(self, principal: str) -> str:
        """Return the local name of a principal; raises NoLocalName."""
        found = _NAME.fullmatch(principal)
        if found is None:
            if "@" in principal:
                raise NoLocalName(f"{principal} is not the name of a principal")
            return principal
        name = (found[3], found[1]) if found[2] is None else (found[3], found[1], found[2])
        made = next((made for rule in self._rules if (made := rule.applied(name, self._default_realm)) is not None), "")
        if not made or _NOT_SIMPLE.search(made):
            raise NoLocalName(f"{SETTING} gives {principal} no simple name")
        return made


def _rule(text: str) -> Rule:
    if text == "DEFAULT":
        return Rule()
    found = _RULE.fullmatch(text)
    if found is None:
        raise SettingError(SETTING, text, "a rule is DEFAULT or RULE:[n:format](pattern)s/from/to/g/L")
    parts = int(found["parts"])
    if any(int(one[1]) > parts for one in _FORMAT.finditer(found["format"])):
        raise SettingError(SETTING, text, f"its format names a part beyond the {parts} that it is for")
    match, find = (None if found[name] is None else _pattern(text, found[name]) for name in ("match", "find"))
    used = [int(one[2]) for one in _REFERENCE.finditer(found["to"] or "") if one[2]]
    if find is not None and used and max(used) > find.groups:
        raise SettingError(SETTING, text, f"the pattern {found['find']} has no group {max(used)}")
    return Rule(parts, found["format"], match, find, found["to"] or "", bool(found["all"]), found["case"] or "")


def _pattern(text: str, pattern: str) -> re2._Regexp:  # pyright: ignore[reportPrivateUsage]
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise SettingError(SETTING, text, f"the pattern {pattern} cannot be used: {reason}") from None

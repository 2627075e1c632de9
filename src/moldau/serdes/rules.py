"""Rules of a schema, as far as serdes run them: those of type ENCRYPT (fields) and ENCRYPT_PAYLOAD (the whole value).

They run where Confluent's clients run them: on what is written with a schema from the registry (`use.latest.version`
and its kin), and on everything that is read, in reverse order. Rules of other types are not run. A value is not written
past them, which would promise what nobody checked; it is read without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

from .context import SerdeError

WRITE, READ, BOTH = "WRITE", "READ", "WRITEREAD"
FIELDS, PAYLOAD = "ENCRYPT", "ENCRYPT_PAYLOAD"
IGNORED = "NONE"  # what to do when a rule fails: go on
STRING, BYTES = "string", "bytes"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `params` are its own, then the properties in the metadata of its schema."""

    name: str
    type: str
    mode: str
    tags: frozenset[str] = frozenset()
    params: tuple[tuple[str, str], ...] = ()
    on_failure: str = ""
    disabled: bool = False

    def runs(self, mode: str) -> bool:
        return not self.disabled and self.mode in (mode, BOTH)

    def ignores_failure(self, mode: str) -> bool:
        """Say whether a value goes on unchanged when the rule fails: `ERROR,NONE` is for writing and reading."""
        actions = [each.strip() for each in self.on_failure.split(",")]
        return (actions[0] if mode == WRITE else actions[-1]) == IGNORED

    def param(self, name: str) -> str | None:
        return next((value for key, value in self.params if key == name), None)


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a schema that serdes look at, and the tags that its metadata give to fields, by their paths."""

    domain: tuple[Rule, ...] = ()
    encoding: tuple[Rule, ...] = ()
    paths: tuple[tuple[str, frozenset[str]], ...] = ()

    def of(self, rules: Sequence[Rule], mode: str) -> list[Rule]:
        """Return those that run, in their order; SerdeError for what must not be written past."""
        found = [rule for rule in rules if rule.runs(mode)]
        for rule in found:
            if mode == WRITE and rule.type not in (FIELDS, PAYLOAD):
                raise SerdeError(f"rule {rule.name!r} is of type {rule.type}, which these serdes do not run")
        ours = [rule for rule in found if rule.type in (FIELDS, PAYLOAD)]
        return ours if mode == WRITE else ours[::-1]

    def refuse_columns(self, mode: str) -> None:
        """Raise SerdeError if a rule runs: they know values, not columns."""
        for rule in self.of((*self.domain, *self.encoding), mode):
            raise SerdeError(f"rule {rule.name!r} is run value by value, so this topic cannot be taken as columns")

    def tags(self, path: str, inline: Iterable[str]) -> set[str]:
        given = (tags for pattern, tags in self.paths if matcher(pattern).fullmatch(path))
        return set(inline).union(*given)


NO_RULES = Rules()


def rules_of(schema: Any) -> Rules:
    """Read the rules of a schema as confluent-kafka's client has it."""
    rules, metadata = schema.rule_set, schema.metadata
    if rules is None:
        return NO_RULES
    properties = metadata.properties.properties if metadata and metadata.properties else {}
    tags = metadata.tags.tags if metadata and metadata.tags else {}
    paths = tuple((path, frozenset(each)) for path, each in tags.items())
    kinds = [rules.domain_rules, getattr(rules, "encoding_rules", None)]
    domain, encoding = (tuple(_rule(each, properties) for each in kind or ()) for kind in kinds)
    return Rules(domain, encoding, paths) if domain or encoding else NO_RULES


def _rule(rule: Any, properties: dict[str, str]) -> Rule:
    params = rule.params.params if rule.params else {}
    return Rule(
        rule.name or "",
        rule.type or "",
        rule.mode.value if rule.mode else "",
        frozenset(rule.tags or ()),
        (*params.items(), *properties.items()),
        rule.on_failure or "",
        bool(rule.disabled),
    )


@lru_cache(maxsize=1000)
def matcher(pattern: str) -> re.Pattern[str]:
    """Compile a path with wildcards: ? is a character and * several of one name, ** several across names."""
    parts = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
    split = re.split(r"(\*\*|\*|\?)", pattern.replace("**.*", "**"))
    return re.compile("".join(parts.get(part) or re.escape(part) for part in split), re.DOTALL)


class Executor(Protocol):
    """What encrypts and decrypts for a rule; SerdeError where it cannot."""

    def apply(self, rule: Rule, mode: str, subject: str, kind: str, value: Any) -> Any: ...


# visit(path of the field, its own tags, kind of the value, value) -> the value to put there
Visit = Callable[[str, Iterable[str], str, Any], Any]


def run_on_fields(
    rules: Rules,
    mode: str,
    subject: str,
    executor: Callable[[], Executor],
    value: Any,
    walk: Callable[[Any, Visit], Any],
) -> Any:
    """Run the rules of the domain on a value. `walk` visits the fields of one and returns what comes of it."""
    for rule in rules.of(rules.domain, mode):

        def visit(path: str, inline: Iterable[str], kind: str, field: Any, rule: Rule = rule) -> Any:
            if rule.tags and rule.tags.isdisjoint(rules.tags(path, inline)):
                return field
            return executor().apply(rule, mode, subject, kind, field)

        value = _guarded(rule, mode, value, partial(walk, value, visit))
    return value


def run_on_payload(rules: Rules, mode: str, subject: str, executor: Callable[[], Executor], payload: bytes) -> bytes:
    """Run the rules of the encoding on the bytes behind the frame."""
    for rule in rules.of(rules.encoding, mode):
        work = partial(executor().apply, rule, mode, subject, BYTES, payload)
        payload = _guarded(rule, mode, payload, work)
    return payload


def _guarded(rule: Rule, mode: str, value: Any, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except SerdeError as error:
        if rule.ignores_failure(mode):
            return value
        raise SerdeError(f"rule {rule.name!r} failed: {error}") from None

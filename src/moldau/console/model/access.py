"""Rules and limits in forms, and findings of the security check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.admin.acls import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES, Acl, Filter
from moldau.admin.quotas import Entity
from moldau.admin.weaknesses import Finding
from moldau.console.model.problems import Refused

LONGEST = 1000  # characters of a field
NOT_IN_RULES = ("ANY", "MATCH")
RESOURCE_WORDS = [word for word in RESOURCES if word not in NOT_IN_RULES]
PATTERN_WORDS = [word for word in PATTERNS if word not in NOT_IN_RULES]
OPERATION_WORDS = [word for word in OPERATIONS if word not in NOT_IN_RULES]
PERMISSION_WORDS = ["ALLOW", "DENY"]
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
DEFAULT = "default"
assert set(PERMISSION_WORDS) < set(PERMISSIONS)


def rule(fields: Mapping[str, str]) -> Acl:
    """Return the rule of a form; Refused if something is missing."""
    found = {name: (text or "").strip() for name, text in fields.items()}
    if any(len(text) > LONGEST for text in found.values()):
        raise Refused(f"A field has at most {LONGEST} characters.")
    if not found["name"]:
        raise Refused("A rule needs the name of a resource; * stands for all.")
    if ":" not in found["principal"]:
        raise Refused("Write the principal as User:ada; User:* stands for everybody.")
    return Acl(**{**found, "host": found["host"] or "*"})


def only(acl: Acl) -> Filter:
    """Return the filter that matches this rule only."""
    return Filter(acl.resource, acl.name, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission)


def entity(user: str, client: str) -> Entity:
    """Return whose limit a form sets; `default` stands for all without their own limit."""
    given = (("user", user.strip()), ("client-id", client.strip()))
    found = tuple((kind, None if name == DEFAULT else name) for kind, name in given if name)
    if not found:
        raise Refused("Name a user, a client id, or both.")
    return found


def limit_of(found: Mapping[Entity, Mapping[str, float]], whose: Entity, key: str) -> float | None:
    """Return the limit of an entity; brokers may name its parts in another order."""
    return next((limits.get(key) for one, limits in found.items() if set(one) == set(whose)), None)


def words(of: Entity) -> str:
    """Format an entity for people."""
    return ", ".join(f"{kind} {name or DEFAULT}" for kind, name in of)


def finding_rows(live: Mapping[Finding, Sequence[int]], in_files: Iterable[Finding]) -> list[dict[str, str]]:
    """Return the findings with where they were seen; what brokers and files both show is one row."""
    seen = {one: f"broker{'s' * (len(brokers) > 1)} {', '.join(map(str, brokers))}" for one, brokers in live.items()}
    seen |= {one: "files" for one in in_files if one not in seen}
    return [
        {"id": str(number), "where": where, "problem": what, "to do": remedy, "seen at": place}
        for number, ((where, what, remedy), place) in enumerate(seen.items())
    ]

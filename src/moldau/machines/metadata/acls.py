"""Access control lists: what the metadata log says about who may do what, and the commands that change it.

`Acls` is a part of the cluster's image and changes only by replay. It is indexed by what an entry is about, so that
a decision (authorizer.py) looks at few entries however many there are. Codes are those of the protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ANY = 1  # in a filter: every resource type, pattern type, operation or permission
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
MATCH, LITERAL, PREFIXED = 2, 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = 13, 14, 15
DENY, ALLOW = 2, 3

RESOURCE_TYPES, PATTERN_TYPES = range(TOPIC, USER + 1), (LITERAL, PREFIXED)
OPERATIONS, PERMISSIONS = range(ALL, TWO_PHASE_COMMIT + 1), (DENY, ALLOW)
CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"
ANYBODY = "User:*"
CHANGES_MAX = 10_000  # entries that one request may create or delete

Rule = tuple[str, int, int]  # host, operation, permission
Rules = dict[str, set[Rule]]  # by principal


class Acl(NamedTuple):
    """One entry: a principal may, or may not, do an operation from a host on what the pattern matches."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class Filter(NamedTuple):
    """Which entries are meant; None and ANY mean every one. MATCH means those that count for the named resource."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def is_unknown(self) -> bool:
        """Return whether it uses a code that does not exist."""
        codes = (self.resource_type, RESOURCE_TYPES), (self.pattern_type, (MATCH, *PATTERN_TYPES))
        return any(
            code != ANY and code not in known
            for code, known in (*codes, (self.operation, OPERATIONS), (self.permission, PERMISSIONS))
        )

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.matches_pattern(acl)
        )

    def matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != MATCH:
            return False
        if acl.pattern_type == LITERAL:
            return acl.resource_name == WILDCARD
        return self.resource_name.startswith(acl.resource_name)


@dataclass(slots=True)
class Acls:
    """All entries, by id and by what they are about. `changes` tells who remembers decisions that they are stale."""

    by_id: dict[bytes, Acl] = field(default_factory=dict[bytes, Acl])
    ids: dict[Acl, bytes] = field(default_factory=dict[Acl, bytes])
    patterns: dict[tuple[int, int, str], Rules] = field(default_factory=dict[tuple[int, int, str], Rules])
    prefix_lengths: dict[int, Counter[int]] = field(default_factory=dict[int, Counter[int]])
    changes: int = field(default=0, compare=False)

    def replay(self, record: Any) -> None:
        """AccessControlEntryRecord."""
        acl = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self.changes += 1
        self.by_id[bytes(record.id)] = acl
        self.ids[acl] = bytes(record.id)
        key = acl.resource_type, acl.pattern_type, acl.resource_name
        if key not in self.patterns and acl.pattern_type == PREFIXED:
            self.prefix_lengths.setdefault(acl.resource_type, Counter())[len(acl.resource_name)] += 1
        rules = self.patterns.setdefault(key, {}).setdefault(acl.principal, set())
        rules.add((acl.host, acl.operation, acl.permission))

    def replay_removal(self, record: Any) -> None:
        """RemoveAccessControlEntryRecord."""
        self.changes += 1
        acl = self.by_id.pop(bytes(record.id))
        del self.ids[acl]
        key = acl.resource_type, acl.pattern_type, acl.resource_name
        rules = self.patterns[key][acl.principal]
        rules.remove((acl.host, acl.operation, acl.permission))
        if not rules:
            del self.patterns[key][acl.principal]
        if not self.patterns[key]:
            del self.patterns[key]
            if acl.pattern_type == PREFIXED:
                self.forget_length(acl.resource_type, len(acl.resource_name))

    def forget_length(self, resource_type: int, length: int) -> None:
        lengths = self.prefix_lengths[resource_type]
        lengths[length] -= 1
        if not lengths[length]:
            del lengths[length]
        if not lengths:
            del self.prefix_lengths[resource_type]

    def about(self, resource_type: int, name: str) -> Iterator[Mapping[str, set[Rule]]]:
        """Yield the rules of every pattern that matches a resource."""
        patterns = self.patterns
        for literal in (name, WILDCARD) if name != WILDCARD else (WILDCARD,):
            if rules := patterns.get((resource_type, LITERAL, literal)):
                yield rules
        for length in self.prefix_lengths.get(resource_type, ()):
            if length <= len(name) and (rules := patterns.get((resource_type, PREFIXED, name[:length]))):
                yield rules


def create(acls: Acls, asked: Sequence[Acl], fresh_id: Callable[[], bytes]) -> tuple[list[Any], list[Refused | None]]:
    """Records of the entries that are new, and for each that was asked for why it cannot be, if so."""
    records: dict[Acl, Any] = {}
    answer: list[Refused | None] = []
    for acl in asked:
        problem = objection(acl)
        answer.append(problem)
        if problem is None and acl not in acls.ids and acl not in records:
            records[acl] = record(acl, fresh_id())
    if len(records) > CHANGES_MAX:
        return [], [too_many()] * len(asked)
    return list(records.values()), answer


def record(acl: Acl, acl_id: bytes) -> Any:
    return m.AccessControlEntryRecord(acl_id, *acl)


def objection(acl: Acl) -> Refused | None:
    """Why there cannot be such an entry; the checks in Kafka's order."""
    if acl.resource_type == CLUSTER and acl.resource_name != CLUSTER_NAME:
        problem = f"The cluster as a resource is called {CLUSTER_NAME}."
    elif not acl.resource_name:
        problem = "The name of the resource is empty."
    elif acl.resource_type not in RESOURCE_TYPES:
        problem = f"There is no resource type {acl.resource_type}."
    elif acl.pattern_type not in PATTERN_TYPES:
        problem = f"The pattern of an entry is literal or prefixed, not {acl.pattern_type}."
    elif acl.operation not in OPERATIONS:
        problem = f"There is no operation {acl.operation}."
    elif acl.permission not in PERMISSIONS:
        problem = f"An entry allows or denies; there is no permission type {acl.permission}."
    elif ":" not in acl.principal:
        problem = f"A principal is written TYPE:NAME, not '{acl.principal}'."
    else:
        return None
    return Refused(Error.INVALID_REQUEST, problem)


def delete(acls: Acls, filters: Iterable[Filter]) -> tuple[list[Any], list[list[Acl] | Refused]]:
    """Records that remove what any filter matches, and for each filter what it matched, or why it cannot be."""
    gone: dict[bytes, None] = {}
    answer: list[list[Acl] | Refused] = []
    for one in filters:
        if one.is_unknown():
            answer.append(Refused(Error.INVALID_REQUEST, "The filter uses a code that does not exist."))
            continue
        matched = describe(acls, one)
        ids = [acls.ids[acl] for acl in matched]
        if len(gone.keys() | ids) > CHANGES_MAX:
            answer.append(too_many())
            continue
        gone.update(dict.fromkeys(ids))
        answer.append(matched)
    return [m.RemoveAccessControlEntryRecord(acl_id) for acl_id in gone], answer


def describe(acls: Acls, wanted: Filter) -> list[Acl]:
    """Return the entries that a filter matches."""
    return [acl for acl in acls.ids if wanted.matches(acl)]


def too_many() -> Refused:
    return Refused(Error.POLICY_VIOLATION, f"One request changes at most {CHANGES_MAX} entries.")

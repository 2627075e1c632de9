"""Whether somebody may do something: the decision of Kafka's StandardAuthorizer, on the access control lists.

Super users may do everything. For others all entries count whose pattern matches the resource and whose principal
and host match: one that denies wins over all that allow. Where none allows the answer is no, unless there is no entry
about the resource at all and `allow_everyone` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.machines.metadata.acls import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    ANYBODY,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    LITERAL,
    PREFIXED,
    READ,
    WILDCARD,
    WRITE,
    Acls,
    Rule,
)

# Operations that bring another with them, where they are allowed; to deny them does not deny the other.
IMPLIED_BY = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}
SOME_NAME = "hardcode"  # with which Kafka asks whether somebody may do something to any resource of a type
REMEMBERED_MAX = 50_000

Question = tuple[str, str, int, int, str]  # principal, host, operation, resource type, resource name


class Authorizer:
    """Decides, and remembers decisions until an entry changes."""

    __slots__ = ("acls", "allow_everyone", "remembered", "seen", "super_users")

    def __init__(self, acls: Acls, super_users: Iterable[str] = (), allow_everyone: bool = False) -> None:
        self.acls = acls
        self.super_users = frozenset(super_users)
        self.allow_everyone = allow_everyone
        self.remembered: dict[Question, bool] = {}
        self.seen = acls.changes

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        if self.seen != self.acls.changes or len(self.remembered) > REMEMBERED_MAX:
            self.seen = self.acls.changes
            self.remembered.clear()
        question = principal, host, operation, resource_type, name
        answer = self.remembered.get(question)
        if answer is None:
            answer = self.remembered[question] = principal in self.super_users or self.decide(*question)
        return answer

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Return the decision itself, by the entries alone."""
        denying = set(rules(host, (operation, ALL), DENY))
        allowing = set(rules(host, (operation, ALL, *IMPLIED_BY.get(operation, ())), ALLOW))
        mentioned = allowed = False
        for by_principal in self.acls.about(resource_type, name):
            mentioned = True
            for who in (principal, ANYBODY):
                if entries := by_principal.get(who):
                    if not denying.isdisjoint(entries):
                        return False
                    allowed = allowed or not allowing.isdisjoint(entries)
        return allowed or (self.allow_everyone and not mentioned)

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether there is a name, of a resource that is or could be, for which an entry allows the operation.

        As in Kafka: implied operations do not count here, and denials only where they cover a whole pattern.
        """
        if self.allows(principal, host, operation, resource_type, SOME_NAME):
            return True
        denied = set(self.patterns(principal, host, operation, resource_type, DENY))
        if (LITERAL, WILDCARD) in denied:
            return False
        return any(
            not is_covered(pattern, denied)
            for pattern in self.patterns(principal, host, operation, resource_type, ALLOW)
        )

    def patterns(
        self, principal: str, host: str, operation: int, resource_type: int, permission: int
    ) -> Iterator[tuple[int, str]]:
        """Yield the patterns for which an entry has this permission."""
        wanted = set(rules(host, (operation, ALL), permission))
        for (kind, pattern_type, name), by_principal in self.acls.patterns.items():
            if kind == resource_type and any(
                not wanted.isdisjoint(by_principal.get(who, ())) for who in (principal, ANYBODY)
            ):
                yield pattern_type, name


def rules(host: str, operations: Iterable[int], permission: int) -> Iterator[Rule]:
    """Return the rules that would have this effect."""
    return ((where, operation, permission) for where in (host, WILDCARD) for operation in operations)


def is_covered(pattern: tuple[int, str], denied: set[tuple[int, str]]) -> bool:
    """Return whether all that a pattern allows is denied by another; everything (*) is not denied by less than that."""
    pattern_type, name = pattern
    if pattern_type == LITERAL and name == WILDCARD:
        return False
    if pattern_type == LITERAL and pattern in denied:
        return True
    return any((PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))

"""`moldau acl`: who may do what."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from moldau.admin import acls
from moldau.admin.mistakes import misused
from moldau.cli.commands import Sure, noun
from moldau.cli.options import flag, option
from moldau.cli.session import Session

cli, verb = noun()

Prefixed = Annotated[bool, typer.Option("--prefixed", help="Take the names as prefixes.")]


@dataclass(slots=True)
class Choice:
    """The options that all verbs have: who, which operations, on what."""

    principal: list[str] | None = option(
        "--principal -u", "Rules of this user: ada, or User:ada; * is everybody.", metavar="USER"
    )
    operation: list[str] | None = option("--operation", "Rules about read, write, describe ...; repeatable.")
    topic: list[str] | None = option("--topic -t", "Rules on this topic; * is every topic.")
    group: list[str] | None = option("--group -g", "Rules on this group.")
    transactional_id: list[str] | None = option("--transactional-id", "Rules on this transactional id.")
    cluster: bool = flag("--cluster", "Rules on the cluster.")

    @property
    def principals(self) -> list[str]:
        return [text if ":" in text else f"User:{text}" for text in self.principal or ()]

    @property
    def operations(self) -> list[str]:
        return [_operation(word) for word in self.operation or ()]

    @property
    def resources(self) -> list[tuple[str, str]]:
        named = (("TOPIC", self.topic), ("GROUP", self.group), ("TRANSACTIONAL_ID", self.transactional_id))
        resources = [(kind, name) for kind, names in named for name in names or ()]
        return [*resources, *([("CLUSTER", acls.CLUSTER_NAME)] if self.cluster else [])]

    def filters(self, pattern: str = acls.ANY) -> list[acls.Filter]:
        return [
            acls.Filter(kind, name, pattern if kind != acls.ANY else acls.ANY, who, None, what)
            for kind, name in self.resources or [(acls.ANY, None)]
            for who in self.principals or [None]
            for what in self.operations or [acls.ANY]
        ]


@verb(
    "add",
    "moldau acl add --principal ada --operation read --operation describe --topic orders",
    "moldau acl add --principal ada --operation read --group bill --prefixed",
    "moldau acl add --principal eve --operation all --topic '*' --deny",
    "moldau acl add --principal ada --producer --topic orders",
    "moldau acl add --principal ada --consumer --topic orders --group billing",
)
def add(
    session: Session,
    choice: Choice,
    prefixed: Prefixed = False,
    host: list[str] | None = option("--host", "Hold for connections from this address; repeatable."),
    deny: bool = flag("--deny", "Deny instead of allowing."),
    producer: bool = flag("--producer", "Allow what a producer needs on --topic."),
    consumer: bool = flag("--consumer", "Allow what a consumer needs on --topic and --group."),
) -> None:
    """Add a rule for every combination of principal, host, operation and resource."""
    resources = choice.resources
    if not choice.principal or not resources:
        raise misused("A rule needs --principal, and --topic, --group, --transactional-id or --cluster.")
    if producer or consumer:
        if choice.operation:
            raise misused("--producer and --consumer stand for operations: omit --operation.")
        needed = [*(PRODUCER if producer else ()), *(CONSUMER if consumer else ())]
    else:
        if not choice.operation:
            raise misused(f"Give --operation: {', '.join(_words())}; or --producer or --consumer.")
        needed = [(kind, what) for what in choice.operations for kind in {kind for kind, _ in resources}]
    rules = [
        acls.Acl(kind, name, "PREFIXED" if prefixed else "LITERAL", who, place, what, "DENY" if deny else "ALLOW")
        for kind, name in resources
        for who in choice.principals
        for place in host or ["*"]
        for of, what in needed
        if of == kind
    ]
    acls.create(session.client, rules)
    session.show([asdict(rule) for rule in rules])


PRODUCER = (
    ("TOPIC", "WRITE"),
    ("TOPIC", "DESCRIBE"),
    ("TOPIC", "CREATE"),
    ("TRANSACTIONAL_ID", "WRITE"),
    ("TRANSACTIONAL_ID", "DESCRIBE"),
)
CONSUMER = (("TOPIC", "READ"), ("TOPIC", "DESCRIBE"), ("GROUP", "READ"))


@verb("list", "moldau acl list", "moldau acl list --principal ada", "moldau acl list --topic orders --match")
def list_acls(
    session: Session,
    choice: Choice,
    match: bool = flag("--match", "Show all rules that apply there, also by prefix and by *."),
) -> None:
    """List rules."""
    rules = _described(session, choice.filters("MATCH" if match else acls.ANY))
    session.show([asdict(rule) for rule in rules], empty="There are no such rules.")


def _described(session: Session, filters: list[acls.Filter]) -> list[acls.Acl]:
    return sorted({rule for one in filters for rule in acls.described(session.client, one)})


@verb("remove", "moldau acl remove --principal eve", "moldau acl remove --topic orders --operation read")
def remove(
    session: Session,
    choice: Choice,
    prefixed: Prefixed = False,
    everything: bool = flag("--all", "Remove every rule."),
    sure: Sure = False,
) -> None:
    """Remove all rules of a principal, a resource or an operation."""
    if not (choice.principal or choice.operation or choice.resources or everything):
        raise misused("Say which rules: --principal, --operation, a resource, or --all.")
    filters = choice.filters("PREFIXED" if prefixed else acls.ANY)
    rules = _described(session, filters)
    session.confirm(f"Remove {len(rules)} rules?", sure)
    removed = acls.delete(session.client, filters) if rules else []
    session.show([asdict(rule) for rule in removed], empty="There are no such rules.")


def _operation(word: str) -> str:
    operation = word.upper().replace("-", "_")
    if operation not in acls.OPERATIONS or operation == acls.ANY:
        raise misused(f"There is no operation {word!r}: there are {', '.join(_words())}.")
    return operation


def _words() -> list[str]:
    return [word.lower().replace("_", "-") for word in acls.OPERATIONS if word != acls.ANY]

"""`moldau acl`: who may do what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from moldau.admin import acls
from moldau.admin.mistakes import misused
from moldau.cli.commands import Sure, noun, verb
from moldau.cli.session import Session

cli = noun()

Principal = Annotated[
    list[str] | None, typer.Option("--principal", "-u", metavar="USER", help="ada, or User:ada; * is everybody.")
]
Host = Annotated[list[str] | None, typer.Option("--host", help="From this address; repeatable.")]
Operation = Annotated[list[str] | None, typer.Option("--operation", help="read, write, describe ...; repeatable.")]
OfTopic = Annotated[list[str] | None, typer.Option("--topic", "-t", help="On this topic; * is every one.")]
OfGroup = Annotated[list[str] | None, typer.Option("--group", "-g", help="On this group.")]
OfTransaction = Annotated[list[str] | None, typer.Option("--transactional-id", help="On this transactional id.")]
OfCluster = Annotated[bool, typer.Option("--cluster", help="On the cluster.")]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="On all whose names begin so.")]
Deny = Annotated[bool, typer.Option("--deny", help="Rules that deny.")]


@verb(
    cli,
    "add",
    (
        "moldau acl add --principal ada --operation read --operation describe --topic orders",
        "moldau acl add --principal ada --operation read --group bill --prefixed",
        "moldau acl add --principal eve --operation all --topic '*' --deny",
        "moldau acl add --principal ada --producer --topic orders",
        "moldau acl add --principal ada --consumer --topic orders --group billing",
    ),
)
def add(
    session: Session,
    principal: Principal = None,
    operation: Operation = None,
    topic: OfTopic = None,
    group: OfGroup = None,
    transactional_id: OfTransaction = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    host: Host = None,
    deny: Deny = False,
    producer: Annotated[bool, typer.Option("--producer", help="What a producer needs on --topic.")] = False,
    consumer: Annotated[bool, typer.Option("--consumer", help="What a consumer needs on --topic and --group.")] = False,
) -> None:
    """Add rules: each principal, host, operation and resource with each other."""
    resources = _resources(topic, group, transactional_id, cluster)
    if not principal or not resources:
        raise misused("A rule needs --principal, and --topic, --group, --transactional-id or --cluster.")
    if producer or consumer:
        if operation:
            raise misused("--producer and --consumer stand for operations: leave out --operation.")
        wanted = [*(PRODUCER if producer else ()), *(CONSUMER if consumer else ())]
    else:
        if not operation:
            raise misused(f"Give --operation: {', '.join(_words())}; or --producer or --consumer.")
        wanted = [(kind, _operation(word)) for word in operation for kind in {kind for kind, _ in resources}]
    rules = [
        acls.Acl(kind, name, _pattern(prefixed), _user(who), place, what, "DENY" if deny else "ALLOW")
        for kind, name in resources
        for who in principal
        for place in host or ["*"]
        for of, what in wanted
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


@verb(cli, "list", ("moldau acl list", "moldau acl list --principal ada", "moldau acl list --topic orders --match"))
def list_acls(
    session: Session,
    principal: Principal = None,
    operation: Operation = None,
    topic: OfTopic = None,
    group: OfGroup = None,
    transactional_id: OfTransaction = None,
    cluster: OfCluster = False,
    match: Annotated[bool, typer.Option("--match", help="All rules that hold there, with prefixes and *.")] = False,
) -> None:
    """List rules."""
    filters = _filters(principal, operation, _resources(topic, group, transactional_id, cluster), match=match)
    found = sorted({rule for one in filters for rule in acls.described(session.client, one)})
    session.show([asdict(rule) for rule in found], empty="No rules.")


@verb(cli, "remove", ("moldau acl remove --principal eve", "moldau acl remove --topic orders --operation read"))
def remove(
    session: Session,
    principal: Principal = None,
    operation: Operation = None,
    topic: OfTopic = None,
    group: OfGroup = None,
    transactional_id: OfTransaction = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    everything: Annotated[bool, typer.Option("--all", help="Every rule there is.")] = False,
    sure: Sure = False,
) -> None:
    """Remove all rules of a principal, a resource or an operation."""
    resources = _resources(topic, group, transactional_id, cluster)
    if not (principal or operation or resources or everything):
        raise misused("Say which rules: --principal, --operation, a resource, or --all.")
    filters = _filters(principal, operation, resources, prefixed=prefixed)
    found = sorted({rule for one in filters for rule in acls.described(session.client, one)})
    session.confirm(f"Remove {len(found)} rules?", sure)
    gone = acls.delete(session.client, filters) if found else []
    session.show([asdict(rule) for rule in gone], empty="No rule is like that.")


def _resources(
    topics: list[str] | None, groups: list[str] | None, ids: list[str] | None, cluster: bool
) -> list[tuple[str, str]]:
    named = (("TOPIC", topics), ("GROUP", groups), ("TRANSACTIONAL_ID", ids))
    found = [(kind, name) for kind, names in named for name in names or ()]
    return [*found, *([("CLUSTER", acls.CLUSTER_NAME)] if cluster else [])]


def _filters(
    principals: list[str] | None,
    operations: list[str] | None,
    resources: list[tuple[str, str]],
    *,
    match: bool = False,
    prefixed: bool = False,
) -> list[acls.Filter]:
    pattern = "MATCH" if match else "PREFIXED" if prefixed else acls.ANY
    return [
        acls.Filter(kind, name, pattern if kind != acls.ANY else acls.ANY, who, None, what)
        for kind, name in resources or [(acls.ANY, None)]
        for who in [_user(text) for text in principals or ()] or [None]
        for what in [_operation(word) for word in operations or ()] or [acls.ANY]
    ]


def _pattern(prefixed: bool) -> str:
    return "PREFIXED" if prefixed else "LITERAL"


def _user(text: str) -> str:
    return text if ":" in text else f"User:{text}"


def _operation(word: str) -> str:
    found = word.upper().replace("-", "_")
    if found not in acls.OPERATIONS or found == acls.ANY:
        raise misused(f"There is no operation {word!r}: there are {', '.join(_words())}.")
    return found


def _words() -> list[str]:
    return [word.lower().replace("_", "-") for word in acls.OPERATIONS if word != acls.ANY]

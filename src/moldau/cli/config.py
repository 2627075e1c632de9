"""`moldau config`: settings of topics, brokers, groups and metrics subscriptions, as they are in a running cluster."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from moldau.admin import configs
from moldau.admin.mistakes import misused
from moldau.cli.commands import noun, verb
from moldau.cli.session import Session, pairs

cli = noun()


class Entity(StrEnum):
    """What has settings."""

    topic = "topic"
    broker = "broker"
    group = "group"
    client_metrics = "client-metrics"
    logger = "logger"


KINDS = {
    Entity.topic: configs.Kind.TOPIC,
    Entity.broker: configs.Kind.BROKER,
    Entity.group: configs.Kind.GROUP,
    Entity.client_metrics: configs.Kind.CLIENT_METRICS,
    Entity.logger: configs.Kind.BROKER_LOGGER,
}
Kind = Annotated[Entity, typer.Argument(help="Of what.")]
Name = Annotated[str, typer.Argument(help="Its name; a broker's number, or `all` for what all brokers have.")]


@verb(
    cli,
    "show",
    (
        "moldau config show topic orders",
        "moldau config show broker 0 'log.*' --all",
        "moldau config show topic orders retention.ms --why",
    ),
)
def show(
    session: Session,
    kind: Kind,
    name: Name,
    pattern: Annotated[str, typer.Argument(help="Only settings like this; * stands for anything.")] = "*",
    everything: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Where values come from, or would come from.")] = False,
) -> None:
    """Show settings that differ from the defaults, or all."""
    entries = configs.described(session.client, _resource(kind, name), documentation=session.output.value != "table")
    named = pattern != "*"
    found = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
    rows = [_row(entry, why) for entry in found if everything or named or not entry.is_default]
    columns = ["name", "value", "source", *(["from"] if why else [])]
    session.show(rows, columns, "All settings have their defaults; --all shows them.")


def _row(entry: configs.Entry, why: bool) -> dict[str, Any]:
    row = {
        "name": entry.name,
        "value": "(secret)" if entry.sensitive else entry.value,
        "source": entry.source.lower(),
        "type": entry.type,
        "read_only": entry.read_only,
        "documentation": entry.documentation,
    }
    chain = [f"{one.name}={one.value} ({one.source.lower()})" for one in entry.synonyms]
    return {**row, "from": chain} if why else row


@verb(
    cli,
    "set",
    (
        "moldau config set topic orders retention.ms=86400000",
        "moldau config set broker all log.cleaner.threads=2 --dry-run",
        "moldau config set topic orders cleanup.policy=compact --append",
    ),
)
def set_configs(
    session: Session,
    kind: Kind,
    name: Name,
    given: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Settings.")],
    append: Annotated[bool, typer.Option("--append", help="Add to lists.")] = False,
    subtract: Annotated[bool, typer.Option("--subtract", help="Take out of lists.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask whether it could be; change nothing.")] = False,
) -> None:
    """Change settings, all or none of them."""
    if append and subtract:
        raise misused("Give --append or --subtract, not both.")
    operation = configs.Operation.APPEND if append else configs.Operation.SET
    operation = configs.Operation.SUBTRACT if subtract else operation
    changes = [configs.Change(*pair, operation) for pair in pairs(given, "the setting").items()]
    _change(session, kind, name, changes, dry_run)


@verb(cli, "unset", ("moldau config unset topic orders retention.ms cleanup.policy",))
def unset(
    session: Session,
    kind: Kind,
    name: Name,
    names: Annotated[list[str], typer.Argument(metavar="SETTING...", help="Settings.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask whether it could be; change nothing.")] = False,
) -> None:
    """Take settings back to what they are without having been set."""
    _change(session, kind, name, configs.changes({}, names), dry_run)


def _change(session: Session, kind: Entity, name: str, changes: list[configs.Change], dry_run: bool) -> None:
    configs.alter(session.client, _resource(kind, name), changes, validate_only=dry_run)
    what = "could be changed" if dry_run else "changed"
    names = [change.name for change in changes]
    session.done(f"{', '.join(names)} of {kind.value} {name} {what}.", entity=kind.value, name=name, settings=names)


@verb(cli, "list", ("moldau config list", "moldau config list --kind group"))
def list_resources(
    session: Session,
    kind: Annotated[list[Entity] | None, typer.Option("--kind", help="Only of this kind; repeatable.")] = None,
) -> None:
    """List what has settings, or could have some."""
    words = {number: entity for entity, number in KINDS.items()}
    found = configs.listed(session.client, [KINDS[entity] for entity in kind or KINDS])
    rows = [{"kind": words[one.kind].value, "name": one.name or "all"} for one in found]
    session.show(sorted(rows, key=lambda row: (row["kind"], row["name"])), empty="Nothing has settings of its own.")


def _resource(kind: Entity, name: str) -> configs.Resource:
    if kind in (Entity.broker, Entity.logger):
        if name == "all" and kind is Entity.broker:
            return configs.Resource(KINDS[kind], "")
        if not name.isdecimal():
            raise misused(f"A broker is named by its number, not {name!r}; `moldau cluster brokers` lists them.")
    return configs.Resource(KINDS[kind], name)

"""`moldau config`: settings of topics, brokers, groups and metrics subscriptions, as they are in a running cluster."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from moldau.admin import configs
from moldau.admin.mistakes import misused
from moldau.cli.commands import DryRun, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.output import pick
from moldau.cli.session import Session, pairs

cli, verb = noun()


class Entity(StrEnum):
    """What has settings."""

    topic = "topic"
    broker = "broker"
    group = "group"
    client_metrics = "client-metrics"
    logger = "logger"


KINDS = {one: configs.Kind["BROKER_LOGGER" if one is Entity.logger else one.name.upper()] for one in Entity}
Kind = Annotated[Entity, typer.Argument(help="What the settings belong to.")]
Name = Annotated[
    str, typer.Argument(help="Its name; for a broker its number, or `all` for the default of all brokers.")
]


@verb(
    "show",
    "moldau config show topic orders",
    "moldau config show broker 0 'log.*' --all",
    "moldau config show topic orders retention.ms --why",
)
def show(
    session: Session,
    kind: Kind,
    name: Name,
    pattern: str = argument("Only settings that match; * stands for anything.", "*"),
    everything: bool = flag("--all", "Show settings with their default values too."),
    why: bool = flag("--why", "Show where each value comes from."),
) -> None:
    """Show settings that differ from their defaults, or all."""
    entries = configs.described(session.client, _resource(kind, name), documentation=not session.for_people)
    named = pattern != "*"
    matching = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
    rows = [_row(entry, why) for entry in matching if everything or named or not entry.is_default]
    columns = ["name", "value", "source", *(["from"] if why else [])]
    session.show(rows, columns, "All settings have their defaults; --all shows them.")


def _row(entry: configs.Entry, why: bool) -> dict[str, Any]:
    row = {
        "name": entry.name,
        "value": "(secret)" if entry.sensitive else entry.value,
        "source": entry.source.lower(),
        **pick(entry, "type", "read_only", "documentation"),
    }
    chain = [f"{one.name}={one.value} ({one.source.lower()})" for one in entry.synonyms]
    return {**row, "from": chain} if why else row


@verb(
    "set",
    "moldau config set topic orders retention.ms=86400000",
    "moldau config set broker all log.cleaner.threads=2 --dry-run",
    "moldau config set topic orders cleanup.policy=compact --append",
)
def set_configs(
    session: Session,
    kind: Kind,
    name: Name,
    given: list[str] = argument("Settings to change.", metavar="NAME=VALUE..."),
    append: bool = flag("--append", "Add the values to lists."),
    subtract: bool = flag("--subtract", "Remove the values from lists."),
    dry_run: DryRun = False,
) -> None:
    """Change settings, all or none of them."""
    if append and subtract:
        raise misused("Give --append or --subtract, not both.")
    operation = configs.Operation.APPEND if append else configs.Operation.SET
    operation = configs.Operation.SUBTRACT if subtract else operation
    changes = [configs.Change(*pair, operation) for pair in pairs(given, "the setting").items()]
    _change(session, kind, name, changes, dry_run)


@verb("unset", "moldau config unset topic orders retention.ms cleanup.policy")
def unset(
    session: Session,
    kind: Kind,
    name: Name,
    names: list[str] = argument("Settings to reset.", metavar="SETTING..."),
    dry_run: DryRun = False,
) -> None:
    """Reset settings to their defaults."""
    _change(session, kind, name, configs.changes({}, names), dry_run)


def _change(session: Session, kind: Entity, name: str, changes: list[configs.Change], dry_run: bool) -> None:
    configs.alter(session.client, _resource(kind, name), changes, validate_only=dry_run)
    what = "could be changed" if dry_run else "changed"
    names = [change.name for change in changes]
    session.done(f"{', '.join(names)} of {kind} {name} {what}.", entity=kind.value, name=name, settings=names)


@verb("list", "moldau config list", "moldau config list --kind group")
def list_resources(
    session: Session, kind: list[Entity] | None = option("--kind", "Only this kind; repeatable.")
) -> None:
    """List what has settings of its own, or can have them."""
    words = {number: entity for entity, number in KINDS.items()}
    listed = configs.listed(session.client, [KINDS[entity] for entity in kind or KINDS])
    rows = [{"kind": words[one.kind].value, "name": one.name or "all"} for one in listed]
    session.show(sorted(rows, key=lambda row: (row["kind"], row["name"])), empty="Nothing has settings of its own.")


def _resource(kind: Entity, name: str) -> configs.Resource:
    if kind in (Entity.broker, Entity.logger):
        if name == "all" and kind is Entity.broker:
            return configs.Resource(KINDS[kind], "")
        if not name.isdecimal():
            raise misused(f"A broker is named by its number, not {name!r}; `moldau cluster brokers` lists them.")
    return configs.Resource(KINDS[kind], name)

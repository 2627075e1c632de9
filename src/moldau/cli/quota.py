"""`moldau quota`: limits of users, clients and addresses."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from moldau.admin import quotas
from moldau.admin.mistakes import misused
from moldau.cli.commands import noun, verb
from moldau.cli.session import Session, pairs

cli = noun()

DEFAULT = "default"
User = Annotated[str | None, typer.Option("--user", "-u", help="A user, or `default` for all without their own.")]
ClientId = Annotated[str | None, typer.Option("--client-id", "-c", help="A client id, or `default`.")]
Address = Annotated[str | None, typer.Option("--ip", help="An address, or `default`.")]


@verb(cli, "list", ("moldau quota list", "moldau quota list --user ada"))
def list_quotas(session: Session, user: User = None, client_id: ClientId = None, ip: Address = None) -> None:
    """List limits."""
    filters = [quotas.Filter(kind, name) for kind, name in _entity(user, client_id, ip)]
    found = quotas.described(session.client, filters, strict=False)
    rows = [
        {**{kind.replace("-", "_"): name or DEFAULT for kind, name in entity}, "quota": key, "value": value}
        for entity, values in found.items()
        for key, value in values.items()
    ]
    session.show(rows, _columns(rows), "No limits.")


@verb(
    cli,
    "set",
    (
        "moldau quota set --user ada producer_byte_rate=1000000",
        "moldau quota set --client-id default consumer_byte_rate=500000 request_percentage=20",
        "moldau quota set --ip 10.0.0.1 connection_creation_rate=5",
    ),
)
def set_quotas(
    session: Session,
    given: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="`moldau settings --scope quota` lists them.")
    ],
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
) -> None:
    """Set limits of a user, a client, both together, or an address."""
    entity = _named(user, client_id, ip)
    new = {name: _number(name, text) for name, text in pairs(given, "the limit").items()}
    quotas.alter(session.client, entity, new)
    session.done(f"Set {', '.join(new)} of {_told(entity)}.", entity=dict(entity), quotas=new)


@verb(cli, "unset", ("moldau quota unset --user ada producer_byte_rate",))
def unset(
    session: Session,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Limits to take away.")],
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
) -> None:
    """Take limits away."""
    entity = _named(user, client_id, ip)
    quotas.alter(session.client, entity, {}, names)
    session.done(f"Took away {', '.join(names)} of {_told(entity)}.", entity=dict(entity), quotas=names)


def _entity(user: str | None, client_id: str | None, ip: str | None) -> quotas.Entity:
    given = (("user", user), ("client-id", client_id), ("ip", ip))
    return tuple((kind, None if name == DEFAULT else name) for kind, name in given if name is not None)


def _named(user: str | None, client_id: str | None, ip: str | None) -> quotas.Entity:
    found = _entity(user, client_id, ip)
    if not found:
        raise misused("Say whose limit: --user, --client-id, both, or --ip.")
    return found


def _told(entity: quotas.Entity) -> str:
    return ", ".join(f"{kind} {name or DEFAULT}" for kind, name in entity)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise misused(f"{name} must be a number, not {text!r}.") from None


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    kinds = [kind for kind in ("user", "client_id", "ip") if any(kind in row for row in rows)]
    return [*kinds, "quota", "value"]

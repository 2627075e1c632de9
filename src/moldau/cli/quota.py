"""`moldau quota`: limits of users, clients and addresses."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.admin import quotas
from moldau.admin.mistakes import misused
from moldau.cli.commands import noun
from moldau.cli.options import argument, option
from moldau.cli.session import Session, pairs

cli, verb = noun()

DEFAULT = "default"


@dataclass(slots=True)
class Whose:
    """The options that name what a limit is about."""

    user: str | None = option("--user -u", "Name a user, or `default` for all users without limits of their own.")
    client_id: str | None = option("--client-id -c", "Name a client id, or `default`.")
    ip: str | None = option("--ip", "Name an address, or `default`.")

    @property
    def entity(self) -> quotas.Entity:
        given = (("user", self.user), ("client-id", self.client_id), ("ip", self.ip))
        return tuple((kind, None if name == DEFAULT else name) for kind, name in given if name is not None)

    def require(self) -> quotas.Entity:
        if not self.entity:
            raise misused("Say whose limit: --user, --client-id, both, or --ip.")
        return self.entity

    def __str__(self) -> str:
        return ", ".join(f"{kind} {name or DEFAULT}" for kind, name in self.entity)


@verb("list", "moldau quota list", "moldau quota list --user ada")
def list_quotas(session: Session, whose: Whose) -> None:
    """List limits."""
    filters = [quotas.Filter(kind, name) for kind, name in whose.entity]
    limits = quotas.described(session.client, filters, strict=False)
    rows = [
        {**{kind.replace("-", "_"): name or DEFAULT for kind, name in entity}, "quota": key, "value": value}
        for entity, values in limits.items()
        for key, value in values.items()
    ]
    kinds = [kind for kind in ("user", "client_id", "ip") if any(kind in row for row in rows)]
    session.show(rows, [*kinds, "quota", "value"], "There are no limits.")


@verb(
    "set",
    "moldau quota set --user ada producer_byte_rate=1000000",
    "moldau quota set --client-id default consumer_byte_rate=500000 request_percentage=20",
    "moldau quota set --ip 10.0.0.1 connection_creation_rate=5",
)
def set_quotas(
    session: Session,
    whose: Whose,
    given: list[str] = argument("Limits; `moldau settings --scope quota` lists them.", metavar="NAME=VALUE..."),
) -> None:
    """Set limits of a user, a client, both together, or an address."""
    entity = whose.require()
    new = {name: _number(name, text) for name, text in pairs(given, "the limit").items()}
    quotas.alter(session.client, entity, new)
    session.done(f"Set {', '.join(new)} of {whose}.", entity=dict(entity), quotas=new)


@verb("unset", "moldau quota unset --user ada producer_byte_rate")
def unset(session: Session, whose: Whose, names: list[str] = argument("Limits to remove.", metavar="NAME...")) -> None:
    """Remove limits."""
    entity = whose.require()
    quotas.alter(session.client, entity, {}, names)
    session.done(f"Removed {', '.join(names)} of {whose}.", entity=dict(entity), quotas=names)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise misused(f"{name} must be a number, not {text!r}.") from None

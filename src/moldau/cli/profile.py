"""`moldau profile`: clusters by name, in a file of the user's."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from moldau.admin.mistakes import misused
from moldau.cli import profiles
from moldau.cli.commands import Sure, complete_profiles, noun, verb
from moldau.cli.session import Session, pairs

cli = noun()
NEITHER = ("bootstrap_servers", "registry", "profile", "client_settings")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile.", autocompletion=complete_profiles)]


@verb(
    cli,
    "set",
    (
        "moldau profile set local --bootstrap-servers 127.0.0.1:9092",
        "moldau profile set staging -b kafka.example:9093 -X security.protocol=ssl --use",
    ),
    without=NEITHER,
)
def set_profile(
    session: Session,
    name: Name,
    bootstrap_servers: Annotated[str | None, typer.Option("--bootstrap-servers", "-b", help="The brokers.")] = None,
    registry: Annotated[str | None, typer.Option("--registry", "-r", metavar="URL", help="The registry.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("-X", metavar="NAME=VALUE", help="A setting of clients; repeatable.")
    ] = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", metavar="NAME", help="Forget a setting.")] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current one.")] = False,
) -> None:
    """Make a profile, or change one."""
    if not profiles.NAME.fullmatch(name):
        raise misused(f"{name!r} is no name: use letters, digits, dots, - and _.")
    known = profiles.load()
    before = known.named.get(name, profiles.Profile())
    kept = {key: value for key, value in before.settings.items() if key not in (unset or ())}
    changed = profiles.Profile(
        bootstrap_servers or before.bootstrap_servers,
        registry or before.registry,
        {**kept, **pairs(settings or (), "-X")},
    )
    current = name if use or not known.named else known.current
    file = profiles.save(profiles.Profiles(current, {**known.named, name: changed}))
    session.done(f"Profile {name} is in {file}{', and current' if current == name else ''}.", name=name, file=str(file))


@verb(cli, "list", ("moldau profile list",), without=NEITHER)
def list_profiles(session: Session) -> None:
    """List profiles."""
    known = profiles.load()
    rows = [
        {
            "name": name,
            "current": name == known.current,
            "bootstrap_servers": one.bootstrap_servers,
            "registry": one.registry,
        }
        for name, one in sorted(known.named.items())
    ]
    session.show(rows, empty="No profiles. `moldau profile set NAME -b HOST:PORT` makes one.")


@verb(cli, "show", ("moldau profile show local",), without=NEITHER)
def show(session: Session, name: Name) -> None:
    """Show a profile; secrets are hidden."""
    session.show({"name": name, **profiles.load().find(name).shown()})


@verb(cli, "use", ("moldau profile use local",), without=NEITHER)
def use(session: Session, name: Name) -> None:
    """Make a profile the one that commands use."""
    known = profiles.load()
    known.find(name)
    profiles.save(replace(known, current=name))
    session.done(f"Commands use the profile {name}.", current=name)


@verb(cli, "delete", ("moldau profile delete staging",), without=NEITHER)
def delete(session: Session, name: Name, sure: Sure = False) -> None:
    """Delete a profile."""
    known = profiles.load()
    known.find(name)
    session.confirm(f"Delete the profile {name}?", sure)
    left = {other: one for other, one in known.named.items() if other != name}
    profiles.save(profiles.Profiles(None if known.current == name else known.current, left))
    session.done(f"Deleted the profile {name}.", deleted=name)


@verb(cli, "path", ("moldau profile path",), without=NEITHER)
def path(session: Session) -> None:
    """Print where the file is."""
    session.done(str(profiles.path()), path=str(profiles.path()))

"""`moldau profile`: clusters by name, kept in a file of the user."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from moldau.admin.mistakes import misused
from moldau.cli import profiles
from moldau.cli.commands import NO_CLUSTER, Sure, complete_profiles, noun
from moldau.cli.options import flag, option
from moldau.cli.output import pick
from moldau.cli.session import Session, pairs

cli, verb = noun(NO_CLUSTER)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile.", autocompletion=complete_profiles)]


@verb(
    "set",
    "moldau profile set local --bootstrap-servers 127.0.0.1:9092",
    "moldau profile set staging -b kafka.example:9093 -X security.protocol=ssl --use",
)
def set_profile(
    session: Session,
    name: Name,
    bootstrap_servers: str | None = option("--bootstrap-servers -b", "The brokers to connect to."),
    registry: str | None = option("--registry -r", "The registry to connect to.", metavar="URL"),
    settings: list[str] | None = option("-X", "Set a setting of clients; repeatable.", metavar="NAME=VALUE"),
    unset: list[str] | None = option("--unset", "Remove a setting.", metavar="NAME"),
    use: bool = flag("--use", "Make it the current profile."),
) -> None:
    """Create or change a profile."""
    if not profiles.NAME.fullmatch(name):
        raise misused(f"{name!r} is not a name: use letters, digits, dots, - and _.")
    known = profiles.load()
    old = known.named.get(name, profiles.Profile())
    kept = {key: value for key, value in old.settings.items() if key not in (unset or ())}
    changed = profiles.Profile(
        bootstrap_servers or old.bootstrap_servers, registry or old.registry, {**kept, **pairs(settings or (), "-X")}
    )
    current = name if use or not known.named else known.current
    file = profiles.save(profiles.Profiles(current, {**known.named, name: changed}))
    session.done(f"Profile {name} is in {file}{', and current' if current == name else ''}.", name=name, file=str(file))


@verb("list", "moldau profile list")
def list_profiles(session: Session) -> None:
    """List profiles."""
    known = profiles.load()
    rows = [
        {"name": name, "current": name == known.current, **pick(one, "bootstrap_servers", "registry")}
        for name, one in sorted(known.named.items())
    ]
    session.show(rows, empty="There are no profiles. `moldau profile set NAME -b HOST:PORT` creates one.")


@verb("show", "moldau profile show local")
def show(session: Session, name: Name) -> None:
    """Show a profile; secrets are hidden."""
    session.show({"name": name, **profiles.load().find(name).public()})


@verb("use", "moldau profile use local")
def use(session: Session, name: Name) -> None:
    """Make a profile the current one, which commands use."""
    known = profiles.load()
    known.find(name)
    profiles.save(replace(known, current=name))
    session.done(f"Commands now use the profile {name}.", current=name)


@verb("delete", "moldau profile delete staging")
def delete(session: Session, name: Name, sure: Sure = False) -> None:
    """Delete a profile."""
    known = profiles.load()
    known.find(name)
    session.confirm(f"Delete the profile {name}?", sure)
    left = {other: one for other, one in known.named.items() if other != name}
    profiles.save(profiles.Profiles(None if known.current == name else known.current, left))
    session.done(f"Deleted the profile {name}.", deleted=name)


@verb("path", "moldau profile path")
def path(session: Session) -> None:
    """Print the path of the file with the profiles."""
    session.done(str(profiles.path()), path=str(profiles.path()))

"""`moldau connect plugin`: Java plugins in a folder of `plugin.path`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import NO_CLUSTER, noun
from moldau.cli.options import argument, option
from moldau.cli.session import Session

if TYPE_CHECKING:
    from moldau.connect.jvm.host import Host

cli = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
plugin_cli, verb = noun(NO_CLUSTER)
cli.add_typer(plugin_cli, name="plugin", help="Install, list and remove Java plugins.")


@dataclass(slots=True)
class Folder:
    """Where plugins are, and what runs them."""

    path: Path = option(
        "--path",
        "The folder of plugins, which workers have in plugin.path.",
        Path("connect-plugins"),
        envvar="MOLDAU_PLUGIN_PATH",
        metavar="FOLDER",
    )
    libs: str = option(
        "--libs",
        "The folder with Connect's jars; otherwise Maven fetches them once.",
        "",
        envvar="MOLDAU_PLUGIN_LIBS",
        metavar="FOLDER",
    )

    @contextmanager
    def host(self) -> Iterator[Host]:
        """Run the host of plugins while it is needed; what it refuses is a sentence."""
        from moldau.connect.errors import ConnectError
        from moldau.connect.jvm.host import Host

        made = Host(self.libs)
        try:
            yield made
        except ConnectError as error:
            raise Mistake(str(error)) from None
        finally:
            made.close()


@verb(
    "install",
    "moldau connect plugin install io.debezium:debezium-connector-postgres:3.6.2.Final",
    "moldau connect plugin install my-connector.jar --path /opt/plugins",
    "moldau connect plugin install my-connector.jar --with org.postgresql:postgresql:42.7.4",
)
def install(
    session: Session,
    folder: Folder,
    what: str = argument("An artifact of Maven, or a .jar, .zip or .tar.gz.", metavar="GROUP:ARTIFACT:VERSION|FILE"),
    more: list[str] = option(
        "--with",
        "What else it needs and does not name itself (repeatable).",
        [],
        metavar="GROUP:ARTIFACT:VERSION",
    ),
) -> None:
    """Install a plugin with all that it needs; workers find it when they start."""
    from moldau.connect.jvm.install import install

    with folder.host() as host:
        found = install(what, folder.path, host, more)
    classes = [one.class_name for one in found]
    listed = "".join(f"\n  {one.kind} {one.class_name} {one.version}" for one in found)
    where = f"plugin.path={folder.path.absolute()}"
    session.done(f"Installed:{listed}\nWorkers with {where} have it when they start.", classes=classes)


@verb("list", "moldau connect plugin list")
def list_(session: Session, folder: Folder) -> None:
    """List the plugins of the folder, with all of their classes."""
    from moldau.connect.jvm.install import installed

    with folder.host() as host:
        found = installed(folder.path, host)
    rows = [
        {"plugin": Path(one.location).name, "kind": one.kind, "class": one.class_name, "version": one.version}
        for one in found
    ]
    session.show(rows, ("plugin", "kind", "class", "version"), f"There are no plugins in {folder.path}.")


@verb("remove", "moldau connect plugin remove debezium-connector-postgres-3.6.2.Final")
def remove(session: Session, folder: Folder, name: str = argument("The plugin, as listed.")) -> None:
    """Remove a plugin; workers that run keep it until they end."""
    from moldau.connect.errors import ConnectError
    from moldau.connect.jvm.install import remove

    try:
        remove(name, folder.path)
    except ConnectError as error:
        raise Mistake(str(error)) from None
    session.done(f"Removed {name}.", plugin=name)

"""`ksql-migrations`: ksqlDB's tool for numbered files of statements, with its commands and flags."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from moldau.admin.mistakes import Mistake
from moldau.cli.ksql.shell import certificates, credentials, defined, properties_of
from moldau.sql.shell.remote import RemoteError, Server
from moldau.sql.tools import migrations
from moldau.sql.tools.migrations import MigrationError

OK, FAILED = 0, 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("ksql-migrations", description="Apply numbered files of statements to a SQL server.")
    made.add_argument(
        "-c", "--config-file", type=Path, metavar="FILE", help="The ksql-migrations.properties of a project."
    )
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help, description=help)

    new = command("new-project", "Make the folder of a project.")
    new.add_argument("folder", type=Path, metavar="FOLDER", help="The folder to make.")
    new.add_argument("url", metavar="URL", help="The address of the server.")
    command("initialize-metadata", "Create the stream and the table that know what was applied.")
    one = command("create", "Make an empty migration.")
    one.add_argument("description", metavar="DESCRIPTION", help="What it does, in a few words.")
    one.add_argument("-v", "--version", type=int, metavar="N", help="Its version; otherwise the next one.")
    applying = command("apply", "Apply migrations.")
    which = applying.add_mutually_exclusive_group(required=True)
    which.add_argument("-n", "--next", action="store_true", help="Apply the next one.")
    which.add_argument("-a", "--all", action="store_true", help="Apply all that are left.")
    which.add_argument("-u", "--until", type=int, metavar="N", help="Apply those up to this version.")
    which.add_argument("-v", "--version", type=int, metavar="N", help="Apply this version alone.")
    applying.add_argument("--dry-run", action="store_true", help="Show what would be applied; apply nothing.")
    applying.add_argument(
        "-d", "--define", action="append", default=[], metavar="NAME=VALUE", help="Define a variable; repeatable."
    )
    command("info", "Show the migrations and their states.")
    command("validate", "Check that no file was changed after it was applied.")
    command("destroy-metadata", "Drop the stream and the table, and delete their topics.")
    return made


def run(arguments: Sequence[str]) -> int:
    """Run `ksql-migrations` with a command line."""
    given = parser().parse_args(list(arguments))
    begun = time.monotonic()
    try:
        for line in _lines(given):
            print(line, flush=True)
    except (Mistake, MigrationError, RemoteError) as error:
        print(f"{error}", file=sys.stderr)
        return FAILED
    print(f"Execution time: {time.monotonic() - begun:.4f} seconds")
    return OK


def _lines(given: argparse.Namespace) -> Iterator[str]:
    if given.command == "new-project":
        yield from migrations.new_project(given.folder, given.url)
        return
    if given.config_file is None:
        raise Mistake("Migrations config file required but not specified. Specify with --config-file.")
    settings = properties_of(given.config_file)
    folder = Path(settings.get("ksql.migrations.dir.override") or given.config_file.parent / migrations.FOLDER)
    if given.command == "create":
        yield from migrations.create(folder, given.description, given.version)
        return
    url = settings.get("ksql.server.url")
    if not url:
        raise Mistake(f"{given.config_file} has no ksql.server.url.")
    auth = credentials(settings.get("ksql.auth.basic.username"), settings.get("ksql.auth.basic.password"))
    server = Server(url, auth, **certificates(settings))
    try:
        names = migrations.Names.of(settings, str(server.info().get("ksqlServiceId", "")))
        yield from _on_server(given, migrations.Metadata(server, names), folder)
    finally:
        server.close()


def _on_server(given: argparse.Namespace, metadata: migrations.Metadata, folder: Path) -> Iterator[str]:
    match given.command:
        case "initialize-metadata":
            yield from metadata.initialize()
        case "destroy-metadata":
            yield from metadata.destroy()
        case "info":
            metadata.require()
            yield from migrations.info(metadata, folder)
        case "validate":
            metadata.require()
            yield from migrations.validate(metadata, folder)
        case "apply":
            wanted = migrations.Wanted(given.next, given.all, given.until, given.version)
            yield from migrations.apply(metadata, folder, wanted, defined(given.define), given.dry_run)

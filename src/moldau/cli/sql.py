"""`moldau sql`: checks, formats and tests files of SQL without a server; runs a server. sql_remote.py talks to one.

A server that waits for its first use must not load the language: sql_files.py does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moldau.cli import sql_changes as sql_changes  # its verbs
from moldau.cli import sql_remote as sql_remote  # its verbs
from moldau.cli.options import epilog, option
from moldau.cli.services import (
    BootstrapServers,
    Config,
    Overrides,
    StartWithUse,
    StopWithStdin,
    run_service,
    settings_of,
)
from moldau.cli.session import Session
from moldau.cli.sql_verbs import cli, verb

EXTENSIONS = option("--extension-dir", "Load functions in Python from the files of this folder.", metavar="FOLDER")

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of SQL statements; - reads stdin.")]
Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files of tests (.json, .sql), or folders.")]


@verb("test", "moldau sql test cases/", "moldau sql test cases/joins.json --json results.json")
def test(
    session: Session,
    paths: Paths,
    json_file: Path | None = option("--json", "Write the results to this file.", metavar="FILE"),
    only: str | None = option("--only", "Run only the cases whose names contain this.", metavar="TEXT"),
    plans_file: Path | None = option("--plans", "Compare query ids, schemas and topologies, too.", metavar="FILE"),
    extensions: Path | None = EXTENSIONS,
) -> None:
    """Run files of tests in memory, a line for each. The exit code is 3 if one fails.

    The files have the form of ksqlDB's query-validation-tests (statements, records in, and records or a refusal out),
    of its rest-query-validation-tests (answers of a server, too), of SQL with ASSERT statements (`--@test: NAME`), or
    of ksql-test-runner (statements.sql, input.json and output.json in one folder).
    """
    from moldau.cli import sql_files

    sql_files.load(extensions)
    sql_files.test(paths, json_file, only, plans_file)


@verb("lint", "moldau sql lint queries.sql", "moldau sql lint *.sql -o json")
def lint(session: Session, files: Files, extensions: Path | None = EXTENSIONS) -> None:
    """Check statements without a server: syntax, names, types and keys. The exit code is 3 if one is wrong.

    Statements are checked in order, as if those before had been executed. A source must declare its columns.
    """
    from moldau.cli import sql_files

    sql_files.load(extensions)
    sql_files.lint(session, files)


@verb("format", "moldau sql format queries.sql")
def format_(session: Session, files: Files) -> None:
    """Print statements in one form: keywords in upper case, a clause a line. Comments are not kept."""
    from moldau.cli import sql_files

    sql_files.reformat(files)


@cli.command("server", epilog=epilog("moldau sql server --bootstrap-servers 127.0.0.1:9092"))
def server(
    bootstrap_servers: BootstrapServers = None,
    listen: str | None = option(
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:8088)", metavar="HOST:PORT"
    ),
    schema_registry_url: str | None = option(
        "--schema-registry-url", "URL of the Schema Registry, for AVRO, PROTOBUF and JSON_SR.", metavar="URL"
    ),
    queries_file: str | None = option(
        "--queries-file", "Execute the statements of this file, and no others.", metavar="FILE"
    ),
    config: Config = None,
    overrides: Overrides = None,
    start_with_use: StartWithUse = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a SQL server that clients of ksqlDB can use.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope sql` and `--scope http` list the settings for --set.
    """
    from moldau.sql.server.process import serve

    given = {"bootstrap_servers": bootstrap_servers, "listen": listen, "schema_registry_url": schema_registry_url}
    given["queries_file"] = queries_file
    run_service(
        "sql server",
        lambda: serve(
            settings_of(config, overrides), **given, start_with_use=start_with_use, stop_with_stdin=stop_with_stdin
        ),
    )

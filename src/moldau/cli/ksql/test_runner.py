"""`ksql-test-runner`: statements with records in and records out, run in memory, as ksqlDB's tool does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau import logs
from moldau.sql.cases.files import NotCases
from moldau.sql.cases.running import Outcome, check
from moldau.sql.errors import SqlError
from moldau.sql.functions.python_functions import load_folder
from moldau.sql.tools.sql_tests import check_sql, has_tests, read_sql_tests
from moldau.sql.tools.triples import triple

OK, FAILED = 0, 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("ksql-test-runner", description="Run a test of statements in memory.")
    add = made.add_argument
    add("-s", "--sql-file", type=Path, metavar="FILE", help="Statements, or tests of SQL in SQL (--@test).")
    add("-i", "--input-file", type=Path, metavar="FILE", help='Records that go in: {"inputs": [...]}.')
    add("-o", "--output-file", type=Path, metavar="FILE", help='Records that must come out: {"outputs": [...]}.')
    add("-e", "--extension-dir", type=Path, metavar="FOLDER", help="Load functions in Python from this folder.")
    add("-td", "--test-directory", type=Path, metavar="PATH", help="Run the tests of SQL in SQL of this folder.")
    add("-tf", "--temp-folder", type=Path, metavar="FOLDER", help="Ignored: nothing is written.")
    return made


def run(arguments: Sequence[str]) -> int:
    """Run `ksql-test-runner` with a command line."""
    given = parser().parse_args(list(arguments))
    try:
        if given.extension_dir is not None:
            load_folder(given.extension_dir)
        with logs.errors_only():
            outcomes = _outcomes(given)
    except (NotCases, SqlError) as error:
        print(f"ksql-test-runner: {error}.", file=sys.stderr)
        return FAILED
    for one in outcomes:
        said = "Test passed!" if one.passed else f"Test failed: {one.reason}"
        print(f"\t >>> {said}" if one.passed else f"\t >>>>> {said}")
    return OK if all(one.passed for one in outcomes) else FAILED


def _outcomes(given: argparse.Namespace) -> list[Outcome]:
    if given.test_directory is not None:
        path: Path = given.test_directory
        files = sorted(path.rglob("*.sql")) if path.is_dir() else [path]
        return [check_sql(test) for file in files for test in read_sql_tests(file)]
    if given.sql_file is None:
        raise NotCases("Name the statements with --sql-file")
    if given.output_file is None:
        if given.sql_file.exists() and has_tests(given.sql_file.read_text("utf-8")):
            return [check_sql(test) for test in read_sql_tests(given.sql_file)]
        raise NotCases("Name the records that must come out with --output-file")
    return [check(triple(given.sql_file, given.input_file, given.output_file))]

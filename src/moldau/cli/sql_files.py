"""What `moldau sql test`, `lint` and `format` do with files; sql.py has their options."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from moldau import logs
from moldau.admin.mistakes import NO, Mistake
from moldau.cli.session import Session
from moldau.sql.cases import Case, NotCases, Outcome, check, read_file
from moldau.sql.cases.plans import Plans, differences, read_plans
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.functions.python_functions import load_folder
from moldau.sql.parser import parse
from moldau.sql.printer import statement_text
from moldau.sql.server.rest_cases import RestCase, check_rest, read_rest_file
from moldau.sql.tools.sql_tests import SqlTest, check_sql, has_tests, read_sql_tests
from moldau.sql.tools.triples import NAMES, in_folder

AnyCase = Case | RestCase | SqlTest


def test(paths: list[Path], json_file: Path | None, only: str | None, plans_file: Path | None) -> None:
    """Run cases, print a line for each, and exit with a code if one fails."""
    results: list[dict[str, Any]] = []
    plans = _plans(plans_file)
    with logs.errors_only():
        for outcome in _outcomes(paths, only):
            _compare(outcome, plans)
            results.append(_result(outcome))
            print(_line(outcome))
    passed = sum(result["passed"] for result in results)
    print(f"{passed} of {len(results)} cases passed.")
    if json_file is not None:
        document = {"passed": passed, "failed": len(results) - passed, "cases": results}
        json_file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    if passed < len(results):
        raise typer.Exit(NO)


def _plans(file: Path | None) -> Plans:
    try:
        return {} if file is None else read_plans(file)
    except NotCases as error:
        raise Mistake(f"{error}.") from None


def _compare(outcome: Outcome, plans: Plans) -> None:
    """Let a case that passed fail if its plans are not the recorded ones."""
    case = outcome.case
    found = differences(case, plans) if outcome.passed and plans and isinstance(case, Case) else []
    if found:
        outcome.passed, outcome.reason = False, "; ".join(found)


def load(folder: Path | None) -> None:
    """Load the functions in Python of a folder, if one is given."""
    if folder is None:
        return
    try:
        load_folder(folder)
    except SqlError as error:
        raise Mistake(f"{error}.") from None


def _outcomes(paths: list[Path], only: str | None) -> Iterator[Outcome]:
    for path in paths:
        if not path.exists():
            raise Mistake(f"{path} does not exist.")
        for file in _test_files(path):
            try:
                cases = _cases(file)
            except NotCases as error:
                raise Mistake(f"{error}.") from None
            for case in cases:
                if only is None or only in case.name:
                    yield _checked(case)


def _test_files(path: Path) -> Iterator[Path]:
    """Yield the files of tests in a folder; a triple of `ksql-test-runner` is one, its statements."""
    if not path.is_dir():
        yield path
        return
    triples = {file.parent for file in path.rglob(NAMES[0]) if in_folder(file.parent) is not None}
    for file in sorted((*path.rglob("*.json"), *path.rglob("*.sql"))):
        if file.parent in triples and file.name in NAMES:
            if file.name == NAMES[0]:
                yield file
        elif file.suffix == ".json" or has_tests(_text(file)):
            yield file


def _cases(file: Path) -> Sequence[AnyCase]:
    if file.suffix != ".sql":
        return read_rest_file(file) or read_file(file)
    found = in_folder(file.parent) if file.name == NAMES[0] else None
    return [found] if found is not None else read_sql_tests(file)


def _checked(case: AnyCase) -> Outcome:
    match case:
        case RestCase():
            return check_rest(case)
        case SqlTest():
            return check_sql(case)
        case Case():
            return check(case)


def _result(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {"file": case.file, "name": case.name, "passed": outcome.passed, "reason": outcome.reason}


def _line(outcome: Outcome) -> str:
    word = "ok  " if outcome.passed else "FAIL"
    reason = "" if outcome.passed else ": " + " ".join(outcome.reason.split())[:500]
    return f"{word} {outcome.case.file}: {outcome.case.name}{reason}"


def lint(session: Session, files: list[Path]) -> None:
    """Print the faults of statements, and exit with a code if there are any."""
    rows = [row for file in files for row in _faults(file)]
    session.show(rows, ("file", "line", "message"), "Nothing is wrong.")
    if rows:
        raise typer.Exit(NO)


def _faults(file: Path) -> Iterator[dict[str, Any]]:
    engine = Engine()
    try:
        statements = parse(_text(file), {})
    except SqlError as error:
        yield {"file": str(file), "line": None, "message": str(error)}
        return
    for statement in statements:
        try:
            engine.execute(statement)
        except SqlError as error:
            line = statement.at[0] if statement.at else None
            yield {"file": str(file), "line": line, "message": str(error).split("\nStatement: ")[0]}


def reformat(files: list[Path]) -> None:
    """Print statements in one form."""
    for file in files:
        try:
            statements = parse(_text(file))
        except SqlError as error:
            raise Mistake(f"{file}: {error}") from None
        print("\n\n".join(map(statement_text, statements)))


def _text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Mistake(f"{file} cannot be read: {why}.") from None

"""What the engine does with the statements of `extensions.py`, and with ALTER SYSTEM.

Whether a function may be loaded is decided by the server that was asked, when it tries the statement. Whoever reads the
command follows it: all catalogues stay the same, also where the file is missing, or where functions come with plans.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.settings import SQL
from moldau.settings.table import rows
from moldau.sql.analysis.query import prepare
from moldau.sql.errors import SqlError
from moldau.sql.extensions import CreateFunction, CreateView, DropFunction, DropView
from moldau.sql.functions.python_functions import load_named, unload
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.parser import parse
from moldau.sql.tree import AlterSystem, Call, Table, walk

if TYPE_CHECKING:
    from moldau.sql.engine import Engine

FOLDER, ENABLED = "ksql.extension.dir", "ksql.udfs.enabled"
log = logging.getLogger(__name__)


def create_function(engine: Engine, statement: CreateFunction) -> None:
    """Load a function from a file that is in the folder of functions already."""
    if statement.name in engine.functions and not statement.or_replace:
        if statement.if_not_exists:
            return
        raise SqlError(f"There is a function {statement.name} already.")
    if engine.trial:
        _check_function(engine, statement)
    elif engine.folder:
        try:
            load_named(Path(engine.folder) / statement.file, statement.name)()
        except SqlError as error:
            log.error("The function %s was created, but cannot be loaded here: %s", statement.name, error)
    engine.functions[statement.name] = statement.file


def _check_function(engine: Engine, statement: CreateFunction) -> None:
    if str(engine.settings.get(ENABLED, "true")).lower() != "true":
        raise SqlError(f"Functions in Python are switched off ({ENABLED}=false).")
    if not engine.folder:
        raise SqlError(f"The server has no folder of functions: set {FOLDER} to one, and put {statement.file} there.")
    if Path(statement.file).name != statement.file:
        raise SqlError(f"FROM names a file in the folder of functions ({FOLDER}), without a path: {statement.file}")
    load_named(Path(engine.folder) / statement.file, statement.name)


def forget_functions(engine: Engine) -> None:
    for name in engine.functions:
        if engine.folder and not engine.trial:
            unload(name)
    engine.functions.clear()


def drop_function(engine: Engine, statement: DropFunction) -> None:
    users = sorted(
        query_id
        for query_id, plan in engine.queries.items()
        if any(isinstance(node, Call) and node.name == statement.name for s in parse(plan.text) for node in walk(s))
    )
    if users:
        raise SqlError(f"Cannot drop function {statement.name}: the queries [{', '.join(users)}] call it.")
    if engine.trial and statement.name not in REGISTRY.loaded and not statement.if_exists:
        raise SqlError(f"There is no function {statement.name} that was loaded from a file.")
    if engine.folder and not engine.trial:
        unload(statement.name)
    engine.functions.pop(statement.name, None)


def create_view(engine: Engine, statement: CreateView) -> None:
    catalogue = engine.catalogue
    if statement.name in catalogue.sources:
        known = catalogue.sources[statement.name].kind.lower()
        raise SqlError(f"Cannot add view '{statement.name}': A {known} with the same name already exists")
    if statement.name in catalogue.views and not statement.or_replace:
        if statement.if_not_exists:
            return
        raise SqlError(f"Cannot add view '{statement.name}': A view with the same name already exists")
    if any(isinstance(node, Table) and node.name == statement.name for node in walk(statement.query)):
        raise SqlError(f"The view {statement.name} cannot read itself.")
    if statement.query.emit is not None or statement.query.limit is not None:
        raise SqlError("A view has no EMIT and no LIMIT: the queries that read it have.")
    prepare(statement.query, catalogue)
    catalogue.views[statement.name] = statement.query


def drop_view(engine: Engine, statement: DropView) -> None:
    views = engine.catalogue.views
    users = sorted(
        name
        for name, query in views.items()
        if any(isinstance(node, Table) and node.name == statement.name for node in walk(query))
    )
    if users:
        raise SqlError(f"Cannot drop view {statement.name}: the views [{', '.join(users)}] read it.")
    if views.pop(statement.name, None) is None and not statement.if_exists:
        raise SqlError(f"View {statement.name} does not exist.")


def alter_system(engine: Engine, statement: AlterSystem) -> None:
    """Check that a setting may change while servers run; the server that executes the command changes it."""
    if statement.name in rows(SQL):
        raise SqlError(f"{statement.name} is read when a server starts: it cannot be altered.")
    if not statement.name.startswith(("ksql.", "auto.offset.reset")):
        raise SqlError(f"{statement.name} is not a setting of statements: those begin with ksql.")


HANDLERS: dict[type, Any] = {
    CreateFunction: create_function,
    DropFunction: drop_function,
    CreateView: create_view,
    DropView: drop_view,
    AlterSystem: alter_system,
}

"""What a file of statements would change on a server: decided here, before anything is sent.

Each statement is compared with what the server has. What is there already, alike, stays; what is new is created; what
differs is replaced if ksqlDB's rules of CREATE OR REPLACE allow it (`upgrades.py`), and the runtime of its query does,
which the query's settings name. For a query that is replaced it is said which of its state survives, which topics it
reads and writes, and which queries read what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from moldau.sql import upgrades
from moldau.sql.catalogue import Source
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError, StatementError
from moldau.sql.parser import parse
from moldau.sql.printer import quoted, statement_text
from moldau.sql.shell.statements import placed
from moldau.sql.steps import Aggregate, QueryPlan, Read, Step, inputs
from moldau.sql.tools.present import number_of
from moldau.sql.tree import (
    AlterSource,
    CreateAs,
    CreateSource,
    CreateType,
    Define,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    SetProperty,
    Statement,
    Undefine,
    UnsetProperty,
)
from moldau.sql.variables import substitute

Action = Literal["create", "replace", "drop", "alter", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one statement would do. `text` is what is sent to the server; nothing if it is empty."""

    action: Action
    what: str
    line: int | None = None
    query: str = ""
    reads: tuple[str, ...] = ()  # topics
    writes: str = ""  # a topic
    readers: tuple[str, ...] = ()  # queries that read what changes
    state: str = ""
    reason: str = ""
    text: str = ""
    settings: Mapping[str, Any] | None = None


def changes(text: str, engine: Engine, variables: Mapping[str, str] | None = None) -> list[Change]:
    """Return the changes that the statements of a text would make to what an engine has. The engine is used up."""
    return list(_changes(text, engine, dict(variables or {})))


def _changes(text: str, engine: Engine, variables: dict[str, str]) -> Iterator[Change]:
    count = max(map(number_of, engine.queries), default=-1) + 1
    settings: dict[str, Any] = {}
    for piece in placed(text):
        (statement,) = parse(substitute(piece, variables))
        match statement:
            case SetProperty():
                settings[statement.name] = statement.value
            case UnsetProperty():
                settings.pop(statement.name, None)
            case Define():
                variables[statement.name] = statement.value
            case Undefine():
                variables.pop(statement.name, None)
            case _:
                engine.settings = dict(settings)
                engine.count = count
                line = statement.at[0] if statement.at else None
                change = replace(change_of(statement, engine), line=line, settings=dict(settings))
                count = max(count, engine.count)
                yield change


def change_of(statement: Statement, engine: Engine) -> Change:
    """Return the change that a statement would make to what an engine has, and make it there."""
    what = _what(statement)
    try:
        match statement:
            case CreateSource() | CreateAs():
                return _source(statement, engine, what)
            case InsertInto():
                return _insert(statement, engine, what)
            case CreateType():
                return _type(statement, engine, what)
            case DropSource():
                return _drop(statement, engine, what)
            case AlterSource() | DropType():
                engine.execute(statement)
                return Change("alter", what, text=statement.text + ";")
            case InsertValues():
                raise SqlError("INSERT ... VALUES would write its row each time: `moldau sql run` executes it")
            case _:
                raise SqlError("Only definitions can be compared and applied: `moldau sql run` executes the rest")
    except SqlError as error:
        return Change("refused", what, reason=_reason(error))


def _reason(error: SqlError) -> str:
    return error.reason if isinstance(error, StatementError) else str(error)


def _what(statement: Statement) -> str:
    kind = getattr(statement, "kind", None)
    name = getattr(statement, "name", None)
    if isinstance(statement, InsertInto | InsertValues):
        return f"INSERT INTO {name}"
    if isinstance(statement, CreateType | DropType):
        return f"TYPE {name}"
    return f"{kind} {name}" if kind and name else statement_text(statement).split("\n")[0]


def _source(statement: CreateSource | CreateAs, engine: Engine, what: str) -> Change:
    before = engine.catalogue.sources.get(statement.name)
    if before is None:
        plan = engine.execute(statement)
        made = engine.catalogue.sources[statement.name]
        return _described(Change("create", what, text=statement.text + ";", writes=made.topic), plan, engine)
    if statement.if_not_exists:
        return Change("unchanged", what, reason="it exists")
    own = _own_query(engine, statement.name)
    former = engine.queries.get(own) if own else None
    if own:
        engine.count = number_of(own)
    trial = _copy(engine)
    plan = trial.execute(replace(statement, or_replace=True))
    after = trial.catalogue.sources[statement.name]
    if _same(before, after) and _step(former) == _step(plan):
        return Change("unchanged", what)
    _check(statement, before, after, former, plan, engine.settings.get(upgrades.RUNTIME))
    readers = tuple(sorted(engine.catalogue.readers.get(statement.name, ())))
    change = Change("replace", what, readers=readers, writes=after.topic, text=_or_replace(statement))
    if former is not None and plan is not None:
        change = replace(change, query=former.query_id, state=state_of(former, plan, engine))
    described = _described(change, plan, trial)
    _adopt(engine, trial)
    return described


def _check(
    statement: CreateSource | CreateAs,
    before: Source,
    after: Source,
    former: QueryPlan | None,
    plan: QueryPlan | None,
    wanted: str | None,
) -> None:
    """Refuse what CREATE OR REPLACE could not do."""
    if (former is None) != (plan is None) or before.by_query != isinstance(statement, CreateAs):
        raise SqlError(f"{before.name} is filled by a query now, or will be: drop it first, and create it anew")
    upgrades.check_source(before, after)
    if former is not None and plan is not None:
        upgrades.check_query(former.step, plan.step)
        runtime = former.settings.get(upgrades.RUNTIME)
        if wanted is not None and runtime is not None:
            upgrades.check_runtime(former.query_id, runtime, wanted)
        if runtime == "spark":
            upgrades.check_state(former.step, plan.step)


def _same(before: Source, after: Source) -> bool:
    return replace(before, text="") == replace(after, text="")


def _step(plan: QueryPlan | None) -> Step | None:
    return None if plan is None else _bare(plan.step)


def _bare(step: Any) -> Any:
    """Return a step without the texts of the statements that made its sources."""
    if isinstance(step, Read):
        return replace(step, source=replace(step.source, text=""))
    names = ("left", "right") if hasattr(step, "left") else ("input",)
    return replace(step, **{name: _bare(getattr(step, name)) for name in names})


def _own_query(engine: Engine, name: str) -> str | None:
    """Return the query that a source was created with: not those of INSERT INTO."""
    mine = (f"CSAS_{name}_", f"CTAS_{name}_")
    return next((one for one in sorted(engine.catalogue.writers.get(name, ())) if one.startswith(mine)), None)


def _copy(engine: Engine) -> Engine:
    known = engine.catalogue
    catalogue = replace(
        known,
        sources=dict(known.sources),
        types=dict(known.types),
        topics=dict(known.topics),
        readers={name: set(ids) for name, ids in known.readers.items()},
        writers={name: set(ids) for name, ids in known.writers.items()},
    )
    return replace(engine, catalogue=catalogue, queries=dict(engine.queries), settings=dict(engine.settings))


def _adopt(engine: Engine, trial: Engine) -> None:
    engine.catalogue, engine.queries, engine.count = trial.catalogue, trial.queries, trial.count


def _or_replace(statement: CreateSource | CreateAs) -> str:
    return statement_text(replace(statement, or_replace=True)).rstrip(";") + ";"


def _described(change: Change, plan: QueryPlan | None, engine: Engine) -> Change:
    if plan is None:
        return change
    topics = tuple(engine.catalogue.sources[name].topic for name in plan.sources)
    return replace(change, query=change.query or plan.query_id, reads=topics, writes=plan.sink.topic)


def _insert(statement: InsertInto, engine: Engine, what: str) -> Change:
    trial = _copy(engine)
    plan = trial.execute(statement)
    assert plan is not None
    for query_id in engine.catalogue.writers.get(statement.name, ()):
        known = engine.queries[query_id]
        if _step(known) == _step(plan):
            return Change("unchanged", what, query=query_id)
    _adopt(engine, trial)
    readers = tuple(sorted(engine.catalogue.readers.get(statement.name, ())))
    return _described(Change("create", what, readers=readers, text=statement.text + ";"), plan, engine)


def _type(statement: CreateType, engine: Engine, what: str) -> Change:
    known = engine.catalogue.types.get(statement.name)
    if known is None:
        engine.execute(statement)
        return Change("create", what, text=statement.text + ";")
    if known == engine.catalogue.resolve(statement.type) or statement.if_not_exists:
        return Change("unchanged", what)
    raise SqlError(f"A type cannot be replaced: DROP TYPE {quoted(statement.name)} first")


def _drop(statement: DropSource, engine: Engine, what: str) -> Change:
    known = engine.catalogue.sources.get(statement.name)
    if known is None and statement.if_exists:
        return Change("unchanged", what, reason="it does not exist")
    writers = sorted(engine.catalogue.writers.get(statement.name, ()))
    engine.execute(statement)
    assert known is not None
    gone = f"the state of {', '.join(writers)} is lost" if writers else ""
    deleted = known.topic if statement.delete_topic else ""
    return Change("drop", what, writes=deleted, state=gone, text=statement.text + ";")


# State


def state_of(before: QueryPlan, after: QueryPlan, engine: Engine) -> str:
    """Say which state of a query survives its replacement."""
    from moldau.flows.deploying import surviving
    from moldau.operators.context import TopologyError

    counts = {name: topic.partitions for name, topic in engine.catalogue.topics.items()}
    try:
        kept = surviving(_depends(before, counts), _depends(after, counts))
    except TopologyError as error:
        return f"not known: {error}"
    assert kept is not None
    if kept.obstacle is not None:
        return f"lost: {kept.obstacle}"
    if before.settings.get(upgrades.RUNTIME) == "local" and kept.report():
        return "built anew from the records since the query began"
    changed = [name for name, columns in _layouts(after).items() if _layouts(before).get(name, columns) != columns]
    if changed:
        return f"read again: {', '.join(changed)} gets other columns"
    return kept.report() or "none is kept"


def _depends(plan: QueryPlan, counts: Mapping[str, int]) -> dict[str, Any]:
    from moldau.flows.deploying import depends_on, made_of
    from moldau.sql.lowering import build
    from moldau.streams.application import application

    return depends_on(made_of(application(build(plan).build(), {}), "", b""), counts)


def _layouts(plan: QueryPlan) -> dict[str, str]:
    """Return the columns of the stores of aggregates, by the stores' names."""

    def walk(step: Step) -> Iterator[Step]:
        yield step
        for one in inputs(step):
            yield from walk(one)

    return {
        f"{step.context.replace('/', '-')}-Materialize": step.schema.text()
        for step in walk(plan.step)
        if isinstance(step, Aggregate)
    }

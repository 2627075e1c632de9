"""How a new query is to be run: decided by the server that was asked, and kept with its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from moldau.flows.definition import NAME
from moldau.sql.catalogue import Catalogue, Settings
from moldau.sql.errors import SqlError
from moldau.sql.functions.python_functions import FILES
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.lowering import application_id, build
from moldau.sql.lowering.levels import levels_of
from moldau.sql.plan_json import CLASS, encoded
from moldau.sql.server.topics import Topics
from moldau.sql.steps import QueryPlan, Run
from moldau.sql.upgrades import RUNTIME, check_runtime, check_state

SHARED, REGISTRY_URL = "ksql.runtime.shared", "ksql.schema.registry.url"
SECRET = ("password", "secret", "jaas", "auth")
LONGEST_NUMBER = 12  # digits of a query's number, which is not known yet
LOADED = frozenset({"moldau.sql.functions.python_functions", "moldau.sql.functions.cases"})


def with_run(plan: QueryPlan, catalogue: Catalogue, topics: Topics, registry: Any, service_id: str) -> QueryPlan:
    """Return a plan that says how it is run; SqlError if it cannot be run so."""
    settings = Settings(plan.settings)
    runtime = settings.text(RUNTIME, "local")
    starts = starts_of(plan, catalogue, topics)
    kept = {name: value for name, value in plan.settings.items() if not any(word in name for word in SECRET)}
    if url := without_password(settings.text(REGISTRY_URL) or ""):
        kept[REGISTRY_URL] = url
    plan = replace(plan, settings=kept)
    if runtime == "local":
        return replace(plan, run=Run(starts=starts))
    if runtime != "spark":
        raise SqlError(f"{RUNTIME} is '{runtime}': it must be spark or local.")
    check(plan, service_id)
    levels = levels_of(build(plan, registry, service_id=service_id), lambda topic: max(1, topics.partitions(topic)))
    files = dict(FILES[name] for name in sorted(_called(encoded(plan.step))) if name in FILES)
    run = Run("spark", settings.flag(SHARED, True), levels, starts, url or None, functions=tuple(files.items()))
    return replace(plan, run=run)


def succeeding(plan: QueryPlan, before: QueryPlan, turns: int) -> QueryPlan:
    """Return the plan of a query that takes the place of another one, which was paused and resumed so many times."""
    check_runtime(before.query_id, before.run.runtime, plan.run.runtime)
    if plan.run.runtime == "local":
        return plan
    check_state(before.step, plan.step)
    if plan.run.levels != before.run.levels:
        raise SqlError(f"The new query has {plan.run.levels} levels with state, {before.query_id} {before.run.levels}.")
    kept, version = before.run, before.run.version + turns + 1
    return replace(plan, run=replace(plan.run, shared=kept.shared, starts=kept.starts, version=version))


def without_password(url: str) -> str:
    """Return an address as it may stand in a topic; workers have logins of their own."""
    return urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()


def starts_of(plan: QueryPlan, catalogue: Catalogue, topics: Topics) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return where a query begins in the topics of streams if it is not to read them from their start: where they end
    now. So what is inserted after the statement is read, whenever the query is started.
    """
    if reset_of(plan.settings) == "earliest":
        return ()
    sources = [catalogue.sources[name] for name in plan.sources]
    tables = {source.topic for source in sources if source.kind == "TABLE"}
    streams = dict.fromkeys(source.topic for source in sources if source.topic not in tables)
    ends = {topic: topics.ends(topic) for topic in streams}
    return tuple((topic, tuple(end for _, end in sorted(found.items()))) for topic, found in ends.items())


def reset_of(settings: Mapping[str, Any]) -> str:
    for name in ("auto.offset.reset", "ksql.streams.auto.offset.reset"):
        if name in settings:
            return str(settings[name]).lower()
    return "latest"


def check(plan: QueryPlan, service_id: str) -> None:
    """Refuse what workers cannot run."""
    name = application_id(plan, service_id)
    if not NAME.fullmatch(f"{name}_{'0' * LONGEST_NUMBER}"):
        raise SqlError(
            f"The query {plan.query_id} cannot run on Spark: names of internal topics have at most 200 of the "
            "characters a-z A-Z 0-9 . _ -"
        )
    for function in sorted(_called(encoded(plan.step))):
        if function not in FILES and not all(_is_ours(row) for row in REGISTRY.rows.get(function, ())):
            raise SqlError(f"{function} is not in a file of ksql.extension.dir, so workers do not have it.")


def _is_ours(row: Any) -> bool:
    """Whether a worker has a function: those of files, and of cases, are known only where they were loaded."""
    return not LOADED & {getattr(made, "__module__", None) for made in (getattr(row, "call", None), row.make)}


def _called(node: Any) -> set[str]:
    """Return the names of all functions in a plan as JSON."""
    if isinstance(node, list):
        return set().union(*map(_called, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node["name"]} if node.get(CLASS) == "Call" else set()
    return own.union(*map(_called, node.values()))

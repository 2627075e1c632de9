"""Wrong things are refused when they are said, with a sentence: every method, every argument, things of every kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from moldau.streams import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyError,
)
from moldau.streams.stores import persistent_key_value_store

TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}
WRONG: list[Any] = [
    5, -1, 3.5, None, "", "no such (", b"x", [], {"a": 1}, object(), lambda: 1, lambda a, b, c, d, e: 1
]  # fmt: skip
# What the builder itself calls, what runs, and what takes anything.
APART = {
    "run", "start", "stores", "then", "keyed_parent", "plan", "freeze", "add_node", "add_global_node",
    "add_internal_topic", "add_store", "copartition", "describe", "picture", "build",
}  # fmt: skip


class Quiet:
    def process(self, record: Any) -> None:
        return


def said() -> dict[str, Any]:
    """One of each thing that has methods, all of one builder."""
    b = StreamsBuilder("app", TEXTS)
    s, t = b.stream("s"), b.table("t")
    g = s.group_by_key()
    cogrouped = g.cogroup(lambda key, value, seen: seen)
    return {
        "builder": b, "stream": s, "table": t, "branches": s.split(), "grouped": g, "cogrouped": cogrouped,
        "grouped table": t.group_by(lambda key, value: (key, value)),
        "windowed": g.windowed_by(TimeWindows.of(5)), "sessions": g.windowed_by(SessionWindows.of(5)),
        "windowed cogroup": cogrouped.windowed_by(TimeWindows.of(5)),
        "cogrouped sessions": cogrouped.windowed_by(SessionWindows.of(5)),
        "topology": Topology("app", TEXTS).add_source("source", "x").add_processor("processor", Quiet, "source"),
    }  # fmt: skip


RIGHT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "predicate": lambda of: lambda key, value: True,
    "mapper": lambda of: lambda key, value: (key, value),
    "selector": lambda of: lambda key, value: (key, value),
    "action": lambda of: lambda key, value: None,
    "joiner": lambda of: lambda one, two: one,
    "reducer": lambda of: lambda one, two: one,
    "initializer": lambda of: list,
    "adder": lambda of: lambda key, value, seen: seen,
    "subtractor": lambda of: lambda key, value, seen: seen,
    "merger": lambda of: lambda key, one, two: one,
    "processor": lambda of: Quiet,
    "operator": lambda of: Quiet,
    "transformer": lambda of: Quiet,
    "windows": lambda of: TimeWindows.of(5),
    "emit": lambda of: EmitStrategy.on_window_close(),
    "suppressed": lambda of: Suppressed.until_time_limit(5),
    "store": lambda of: persistent_key_value_store("kv"),
    "parents": lambda of: "source",
    "grouped": lambda of: of["grouped"],
}


def right(owner: str, method: str, name: str, of: dict[str, Any]) -> Any:
    if name == "other":
        return of["builder"].table("other") if owner == "table" else of["builder"].stream("other")
    if owner == "topology" and name == "processor" and method != "add_processor":
        return "processor" if method.startswith("connect") else "filled"
    if name == "reducer" or (method == "reduce" and owner == "grouped table"):
        return lambda one, two: one
    return RIGHT[name](of) if name in RIGHT else "x"


def methods() -> list[tuple[str, str]]:
    found = [(owner, name) for owner, thing in said().items() for name, _ in inspect.getmembers(thing, callable)]
    return [row for row in found if row[1][0] != "_" and row[1] not in APART and row != ("grouped", "table")]


def tried(owner: str, method: str, wrong: str, thing: Any) -> None:
    of = said()
    function = getattr(of[owner], method)
    parameters = [one for one in inspect.signature(function).parameters.values() if one.kind < one.VAR_KEYWORD]
    given = {
        one.name: thing if one.name == wrong else right(owner, method, one.name, of)
        for one in parameters
        if one.kind != one.VAR_POSITIONAL and (one.name == wrong or one.default is one.empty)
    }
    if owner == "stream" and "join" in method:
        given["window"] = JoinWindows.of(5)
    function(**given)
    built = of["topology"] if owner == "topology" else of["builder"].build()
    built.plan()
    built.describe()


@pytest.mark.parametrize(("owner", "method"), methods())
def test_whatever_is_wrong_is_told_in_a_sentence(owner: str, method: str) -> None:
    """Some of it may be right for some arguments; what is not is a TopologyError, and nothing else is raised."""
    for one in inspect.signature(getattr(said()[owner], method)).parameters.values():
        for thing in WRONG if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) else ():
            try:
                tried(owner, method, one.name, thing)
            except TopologyError as error:
                assert len(str(error).split()) > 4, f"{one.name}={thing!r}"
            except Exception as error:
                pytest.fail(f"{owner}.{method}({one.name}={thing!r}) raised {error!r}")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda b: b.stream(5), r"what stream\(\) reads must be a name, or a list of names, not 5"),
        (lambda b: b.table(["a", "b"]), r"the topic of table\(\) must be a text"),
        (lambda b: b.stream(pattern="("), r"pattern= of KSTREAM-SOURCE-0000000000 must be a regular expression"),
        (lambda b: b.stream("a", timestamp=5), r"timestamp= of KSTREAM-SOURCE-0000000000 needs a function of \(record"),
        (lambda b: b.stream("a").filter(str.upper, name=5), r"name= must be a text, not 5"),
        (
            lambda b: b.stream("a").merge(b.table("t")),
            r"KSTREAM-SOURCE-0000000000 is merged with a stream",
        ),
        (
            lambda b: b.table("a").join(b.stream("s"), max),
            r"KTABLE-SOURCE-\d+ is joined with a table, not",
        ),
        (lambda b: b.stream("a").to("b", partitioner=len), r"KSTREAM-SINK-0000000001 needs a function of \(topic, key"),
        (lambda b: b.stream("a").repartition(partitions="3"), r"partitions= of repartition\(\) must be a whole number"),
        (lambda b: b.add_state_store("kv"), r"a store is given by a function of moldau.streams.stores"),
        (lambda b: b.table("a").suppress(5), r"suppress\(\) of KTABLE-SOURCE-\d+ needs Suppressed"),
        (lambda b: b.stream("a").process(Quiet, stores="kv"), r"uses the store 'kv', which is not there"),
        (lambda b: b.stream("a").filter_not("value >"), r"KSTREAM-FILTER-0000000001"),
    ],
)
def test_the_sentence_names_the_node_and_says_what_to_do(wrong: Callable[[StreamsBuilder], Any], sentence: str) -> None:
    builder = StreamsBuilder("app", TEXTS)
    with pytest.raises(TopologyError, match=sentence):
        wrong(builder)
        builder.build()


def test_settings_that_are_no_mapping_are_refused() -> None:
    for wrong in ("x", 5, {5: 1}):
        with pytest.raises(TopologyError, match="settings must be a mapping from names to values"):
            StreamsBuilder("app", wrong)  # type: ignore[arg-type]

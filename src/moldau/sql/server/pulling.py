"""Pull queries: they are planned, looked up in views, and their plans are kept for the next query of the same shape.

A plan is kept when its shape (`shapes.py`) comes again, and forgotten with every command, for those change sources,
views, functions and types. The settings that planning reads are a part of its key. A query whose plan is kept is a
`Lookup`: its key is taken from the text, and nothing is parsed. Lookups that come together are answered together: the
topics are asked once for their ends, after the last of them has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moldau.sql.analysis.expansion import expand
from moldau.sql.catalogue import Settings, Source
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, check_dialect
from moldau.sql.parser import parse
from moldau.sql.server.access import Uses, uses_of
from moldau.sql.server.catching_up import caught_up
from moldau.sql.server.errors import BAD_STATEMENT, ServerError
from moldau.sql.server.materialized import View
from moldau.sql.server.past import view_as_of
from moldau.sql.server.results import Results, immediate
from moldau.sql.server.shapes import Shape, filled, shape_of, stand_ins, value_of
from moldau.sql.server.topics import Topics
from moldau.sql.transient.pull import RANGES, SCANS, Keys, Pull, Scan, check_clauses, check_columns, plan_pull
from moldau.sql.tree import BIGINT, INTEGER, STRING, Literal, Query, QueryStatement, Table, Type

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service

READ_BY_PLANNING = (DIALECT, SCANS, RANGES)  # the settings on which a plan depends
MOST_PLANS = 1_000
MOST_LAG = "ksql.query.pull.max.allowed.offset.lag"
SLOT_TYPES: dict[str, tuple[Type, ...]] = {"STRING": (STRING,), "INTEGER": (INTEGER, BIGINT)}


@dataclass(frozen=True, slots=True)
class Kept:
    """A plan that is kept. `slots` are the places of the key's values in the shape; None: the plan has its keys."""

    plan: Pull
    slots: tuple[int, ...] | None
    uses: Uses
    heads: dict[str, bytes]  # the first bytes of its answers, by their form

    def lookup(self, values: Sequence[str]) -> Keys | Scan:
        """Return what is looked up for a text with these values."""
        if self.slots is None:
            return self.plan.lookup
        return Keys((tuple(value_of(values[at]) for at in self.slots),))


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query whose plan is kept, as it was when the query came."""

    request: Request
    kept: Kept
    version: int
    lookup: Keys | Scan

    @property
    def is_short(self) -> bool:
        """Whether others can wait for its answer."""
        return isinstance(self.lookup, Keys)


class Pulls:
    """The views of a server, and the plans of its pull queries."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.views: dict[str, View] = {}
        self._version = 0  # of the catalogue
        self._seen: set[Any] = set()  # what comes a second time is kept
        self._slots: dict[str, tuple[int, ...] | None] = {}  # by shape
        self._kept: dict[Any, Kept] = {}
        self._wanted: set[str] = set()  # tables whose views are to be read on

    # Views

    @contextmanager
    def up_to_date(self, source: Source, most_lag: int | None = None) -> Iterator[View]:
        """Give the rows of a table, up to date; nobody changes them meanwhile.

        SqlError if more records than `most_lag` are to be read first. The catalogue's lock is not held while they are.
        """
        service = self._service
        with service.lock:
            view = self.views.get(source.name)
            if view is None or view.source != source:
                view = self.views[source.name] = View(source, service.registry)
        if most_lag is not None:
            self._check_lag(view, view.lags(service.topics.ends(source.topic)), most_lag)
        with view.lock:
            view.catch_up(service.topics, service.topics.ends(source.topic))
            yield view

    def _check_lag(self, view: View, lags: dict[int, int], most: int) -> None:
        late = {partition: lag for partition, lag in sorted(lags.items()) if lag > most}
        if late:
            self._wanted.add(view.source.name)
            parts = ", ".join(
                f"Partition {partition} failed to find valid host. Hosts scanned: [{self._service.address} was not "
                f"selected because Host excluded because lag {lag} exceeds maximum allowed lag {most}.]"
                for partition, lag in late.items()
            )
            raise SqlError(f"Unable to execute pull query. [{parts}]")

    def work(self) -> bool:
        """Read on for views that were too far behind for a query."""
        for name in list(self._wanted):
            view = self.views.get(name)
            if view is None or not self._read_on(view):
                self._wanted.discard(name)
        return bool(self._wanted)

    def _read_on(self, view: View) -> bool:
        with view.lock:
            return view.read_on(self._service.topics)

    def follow(self) -> None:
        """Forget the views of tables that are no more what they were."""
        sources = self._service.engine.catalogue.sources
        for name, view in list(self.views.items()):
            if sources.get(name) != view.source:
                del self.views[name]

    # Queries

    def answer(self, query: Query, request: Request) -> Results:
        """Answer a query that has been parsed."""
        service = self._service
        waited, query, moment = query.wait is not None, caught_up(service, query), None
        if isinstance(query.source, Table) and query.source.name in service.engine.catalogue.sources:
            moment, query = query.source.as_of, replace(query, source=replace(query.source, as_of=None))
        with service.lock:
            query, source = self._table(query)
            if source.kind == "STREAM" and moment is not None:
                raise SqlError(f"AS OF reads tables, and {source.name} is a stream.")
            if source.kind == "STREAM":
                return service.read_once(query, request)
            plan = plan_pull(query, service.engine.catalogue, self._settings(request))
            if moment is None and not waited:
                self._keep(request)
        if moment is None:
            with self.up_to_date(plan.source, self.most_lag(request)) as view:
                return immediate(plan.columns, looked_up(plan, plan.lookup, view, service.topics))
        view = view_as_of(plan.source, moment, service.topics, service.registry, service.clock())
        return immediate(plan.columns, looked_up(plan, plan.lookup, view, service.topics))

    def _table(self, query: Query) -> tuple[Query, Source]:
        """Return a query on what it reads in the end, and that."""
        query = expand(query, self._service.engine.catalogue)
        check_clauses(query)
        check_columns(query)
        assert isinstance(query.source, Table)
        return query, self._service.engine.catalogue.source(query.source.name)

    def _settings(self, request: Request) -> Settings:
        return Settings({**self._service.settings, **request.properties})

    def most_lag(self, request: Request) -> int | None:
        """Return how many records a view may be behind when a query comes; None if that does not matter."""
        text = request.properties.get(MOST_LAG, self._service.settings.get(MOST_LAG))
        if text is None:
            return None
        try:
            most = int(text)
        except (TypeError, ValueError):
            raise SqlError(f"Invalid value {text} for configuration {MOST_LAG}: Not a number of type LONG") from None
        return most if most >= 0 else None

    # Kept plans

    def known(self, request: Request) -> Lookup | None:
        """Return the lookup of a query whose plan is kept and whose view is there."""
        shape = shape_of(request.text)
        if shape is None or shape.text not in self._slots or request.variables:
            return None
        version = self._version
        kept = self._kept.get(self._key(shape, request))
        view = None if kept is None else self.views.get(kept.plan.source.name)
        if kept is None or view is None or view.is_slow:
            return None
        return Lookup(request, kept, version, kept.lookup(shape.values))

    def answers(self, lookups: Sequence[Lookup]) -> list[Results | ServerError | None]:
        """Answer lookups; None for one whose plan is no longer valid."""
        views: dict[str, View] = {}
        with ExitStack() as stack:
            return [self._answered(lookup, views, stack) for lookup in lookups]

    def _answered(self, lookup: Lookup, views: dict[str, View], stack: ExitStack) -> Results | ServerError | None:
        """Answer a lookup; views that have been brought up to date already are in `views`, and locked until the end."""
        service, request, plan = self._service, lookup.request, lookup.kept.plan
        try:
            service.admission.check_properties(request.properties)
            request.access(lookup.kept.uses)
            with service.admission.pull():
                if lookup.version != self._version:
                    return None
                view = views.get(plan.source.name)
                if view is None:
                    given = self.up_to_date(plan.source, self.most_lag(request))
                    view = views[plan.source.name] = stack.enter_context(given)
                found = immediate(plan.columns, looked_up(plan, lookup.lookup, view, service.topics))
                found.heads = lookup.kept.heads
                return found
        except ServerError as error:
            return error
        except SqlError as error:
            return ServerError(BAD_STATEMENT, str(error), request.text)

    def forget_plans(self) -> None:
        """Forget everything that depends on the catalogue."""
        self._version += 1
        for kept in (self._seen, self._slots, self._kept):
            kept.clear()

    def _key(self, shape: Shape, request: Request) -> Any:
        """Return under what a plan is kept: the shape, the values that are no keys, and the settings that count."""
        slots = self._slots.get(shape.text) or ()
        fixed = tuple(value for at, value in enumerate(shape.values) if at not in slots)
        given, ours = request.properties, self._service.settings
        return shape.text, fixed, *(str(given.get(name, ours.get(name))) for name in READ_BY_PLANNING)

    def _keep(self, request: Request) -> None:
        """Keep the plan of a query that comes again."""
        shape = None if request.variables else shape_of(request.text)
        if shape is None or ";" in shape.text.strip().rstrip(";"):
            return  # there is more than the query
        if len(self._seen) >= MOST_PLANS:
            self.forget_plans()
        if shape.text not in self._slots:
            if self._is_new(shape.text):
                return
            self._slots[shape.text] = self._slots_of(shape, request)
        key = self._key(shape, request)
        if key in self._kept or self._is_new(key):
            return
        slots = self._slots[shape.text]
        marks = stand_ins(shape)
        values = [marks[at] if slots and at in slots else value for at, value in enumerate(shape.values)]
        planned = self._planned(filled(shape.text, values), request)
        if planned is not None:
            self._kept[key] = Kept(planned[0], slots, planned[1], {})

    def _is_new(self, seen: Any) -> bool:
        new = seen not in self._seen
        self._seen.add(seen)
        return new

    def _slots_of(self, shape: Shape, request: Request) -> tuple[int, ...] | None:
        """Find the slots that are the key, column by column, in the plan of a text with stand-ins for all values."""
        try:
            marks = stand_ins(shape)
            planned = self._planned(filled(shape.text, marks), request)
        except SqlError:
            return None  # the values matter in other ways
        if planned is None:
            return None
        plan, places = planned[0], {value_of(mark): at for at, mark in enumerate(marks)}
        found: list[int] = []
        for operand, (_, kind) in zip(plan.operands, plan.source.schema.key, strict=False):
            if not isinstance(operand, Literal) or kind not in SLOT_TYPES.get(operand.kind, ()):
                return None
            if operand.value not in places:
                return None
            found.append(places[operand.value])
        return tuple(found) or None

    def _planned(self, text: str, request: Request) -> tuple[Pull, Uses] | None:
        """Plan a text that is one pull query on a table as it is now; None if it is anything else."""
        catalogue, settings = self._service.engine.catalogue, self._settings(request)
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], QueryStatement):
            return None
        statement, query = statements[0], statements[0].query
        if query.wait is not None or (isinstance(query.source, Table) and query.source.as_of is not None):
            return None
        check_dialect(statement, settings.text(DIALECT, "") or "")
        return plan_pull(self._table(query)[0], catalogue, settings), uses_of(statement, catalogue)


def looked_up(plan: Pull, lookup: Keys | Scan, view: View, topics: Topics) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a plan."""
    found = view.find(lookup.keys, topics) if isinstance(lookup, Keys) else view.scan()
    left = plan.limit
    for row in found:
        if left == 0:
            return
        result = plan.compute(row)
        if result is not None:
            left = None if left is None else left - 1
            yield result

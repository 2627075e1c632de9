"""The service: it executes the statements of requests and answers queries, whatever they came in by.

Statements that change the catalogue are commands (`commands.py`): they are tried on a copy of the catalogue, then
written, and executed when they are read back. Everything else is answered from the catalogue at once.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.operators.record import Produced
from moldau.serdes.context import Context, SerdeError
from moldau.sql.analysis.expansion import branches, expand
from moldau.sql.catalogue import Catalogue, Settings, Source, Topic
from moldau.sql.engine import Engine
from moldau.sql.errors import ParseError, SqlError
from moldau.sql.extensions import DIALECT, DeleteFrom, check_dialect
from moldau.sql.inference import inferring
from moldau.sql.lowering import application_id, build_rows
from moldau.sql.lowering.serdes import key_serde, value_serde
from moldau.sql.parser import parse
from moldau.sql.server import entities, full_sql, registering, showing, terminating, waiting
from moldau.sql.server.access import DELETE, Access, anything, uses_of
from moldau.sql.server.commands import (
    TERMINATE_CLUSTER,
    Command,
    Commands,
    Executed,
    MemoryCommands,
    Overtaken,
    Plan,
    command_id,
    replay,
)
from moldau.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    DENIED,
    FORBIDDEN,
    QUERY_ENDPOINT,
    ServerError,
    reason,
)
from moldau.sql.server.limits import Admission
from moldau.sql.server.local import LocalQueries, LocalQuery
from moldau.sql.server.planning import starts_of, succeeding, with_run
from moldau.sql.server.pulling import Pulls
from moldau.sql.server.results import Pushed, Results, now_ms
from moldau.sql.server.states import NoStates, States
from moldau.sql.server.statuses import Statuses
from moldau.sql.server.topics import Checkpoints, Positions, Topics
from moldau.sql.server.unions import together
from moldau.sql.steps import QueryPlan, kind_of
from moldau.sql.tools.changes import Change, change_of
from moldau.sql.transient.inserts import Inserted, deleted, inserted
from moldau.sql.transient.push import Push, plan_push
from moldau.sql.tree import (
    AlterSystem,
    AssertSchema,
    AssertSource,
    AssertTopic,
    CreateSource,
    Define,
    Describe,
    DropSource,
    Explain,
    InsertValues,
    PrintTopic,
    Query,
    QueryControl,
    QueryStatement,
    SetProperty,
    Show,
    Statement,
    Table,
    Undefine,
    UnsetProperty,
)
from moldau.sql.upgrades import RUNTIME
from moldau.sql.variables import substitute

log = logging.getLogger(__name__)
# Statements that change nothing for others.
READING = (
    AssertSchema,
    AssertSource,
    AssertTopic,
    Define,
    Describe,
    Explain,
    PrintTopic,
    QueryStatement,
    SetProperty,
    Show,
    Undefine,
    UnsetProperty,
)
TRIES = 20  # of a statement, when other servers change something at the same time
END_S, LOOK_S = 30.0, 0.1  # for a worker to let a query go, and between two looks
ELSEWHERE = "The following statement types should be issued to the websocket endpoint '/query':\n\t* PRINT\n\t* SELECT"


@dataclass(slots=True)
class Request:
    """The text of a request with its properties and variables, which statements of the text may change.

    Without `may_change` only statements of READING are executed. `access` is asked about the topics of each one.
    """

    text: str
    properties: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    may_change: bool = True
    access: Access = anything


class Service:
    """The catalogue, the queries that run here, and the views that pull queries look into."""

    def __init__(
        self,
        topics: Topics,
        registry: Any = None,
        settings: Mapping[str, Any] | None = None,
        commands: Callable[[Service], Commands] | None = None,
        clock: Callable[[], int] = now_ms,
        checkpoints: Checkpoints | None = None,
        runs: Callable[[], bool] = lambda: True,
        states: States | None = None,
    ) -> None:
        self.topics, self.registry, self.clock = topics, registry, clock
        self.runs = runs  # whether this server is the one that runs local queries
        self.states: States = states or NoStates()
        self.settings: dict[str, Any] = dict(settings or {})
        self.service_id = str(self.settings.get("ksql.service.id", "default_"))
        folder = str(self.settings.get("ksql.extension.dir") or "")
        self.engine = Engine(infer=inferring(registry) if registry is not None else _no_registry, folder=folder)
        self.local = LocalQueries(topics, registry, checkpoints, self.service_id)
        self.pulls, self.databases = Pulls(self), full_sql.Databases()
        self.pushes: dict[str, Results] = {}
        self.lock = threading.RLock()
        self._changing = threading.Lock()  # one command at a time
        self._ended: dict[str, set[str]] = {}
        self.statuses = Statuses()  # of commands
        self.commands = MemoryCommands(self.apply) if commands is None else commands(self)
        self._transient = 0
        self.admission = Admission()
        self.live = True  # whether commands are new; those of a start are old
        self.terminated = False
        self.address = "localhost:8088"  # under which others know this server
        self.headless: str | None = None  # the file whose statements are the only ones

    # Statements

    def execute(self, request: Request) -> list[dict[str, Any]]:
        """Execute the statements of a request, and return an entity for each that has one."""
        answers: list[dict[str, Any]] = []
        for statement in self._parsed(request):
            try:
                answer = self._execute(statement, request)
            except ServerError as error:
                error.entities = tuple(answers)
                raise
            except SqlError as error:
                raise ServerError(BAD_STATEMENT, reason(error), statement.text, tuple(answers)) from None
            if answer is not None:
                answers.append(answer)
        return answers

    def _parsed(self, request: Request) -> Iterator[Statement]:
        """Yield the statements; a variable that a statement defines is known to those after it."""
        try:
            statements = parse(substitute(request.text, request.variables))
            self.admission.check_statements(len(statements))
            self.admission.check_properties(request.properties)
            if not any(isinstance(statement, Define | Undefine) for statement in statements):
                yield from statements
                return
            for at in range(len(statements)):  # each is parsed again, with the variables known by then
                again = parse(substitute(request.text, request.variables))
                yield again[at]
        except ParseError as error:
            raise ServerError(BAD_STATEMENT, str(error), request.text) from None

    def _execute(self, statement: Statement, request: Request) -> dict[str, Any] | None:
        if not request.may_change and not isinstance(statement, READING):
            raise ServerError(DENIED, FORBIDDEN, statement.text)
        request.access(uses_of(statement, self.engine.catalogue))
        check_dialect(statement, str({**self.settings, **request.properties}.get(DIALECT, "")))
        match statement:
            case QueryStatement() | PrintTopic():
                raise ServerError(QUERY_ENDPOINT, ELSEWHERE, statement.text)
            case SetProperty():
                self.admission.check_properties([statement.name])
                request.properties[statement.name] = statement.value
            case UnsetProperty():
                request.properties.pop(statement.name, None)
            case Define():
                request.variables[statement.name] = statement.value
            case Undefine():
                request.variables.pop(statement.name, None)
            case InsertValues():
                self.insert(inserted(statement, self.engine.catalogue, self.clock()))
            case DeleteFrom():
                self.insert(deleted(statement, self.engine.catalogue, self.clock()))
            case _:
                return self._answered(statement, request)
        return None

    def _answered(self, statement: Statement, request: Request) -> dict[str, Any]:
        if isinstance(statement, QueryControl) and (results := self._pushed_as(statement)) is not None:
            results.done = True  # whoever sends its rows ends it
            return entities.terminated(statement.text, str(results.query_id))
        name = command_id(statement)
        if waiting.is_waiting(statement):
            return waiting.answer(self, statement, request)
        if name is None:
            with self.lock:
                return showing.answer(self, statement, request)
        if self.headless is not None:
            raise SqlError(f"The server runs the statements of {self.headless}, and no others (ksql.queries.file).")
        with self._changing:
            self.commands.catch_up()
            done = self._change(name, statement, request)
        return entities.current_status(statement.text, name, done)

    def _pushed_as(self, statement: QueryControl) -> Results | None:
        """Return the push query that a TERMINATE names: in any case, for names without quotes lose theirs."""
        if statement.action != "TERMINATE" or statement.query_id is None:
            return None
        wanted = statement.query_id.upper()
        return next((results for name, results in self.pushes.items() if name.upper() == wanted), None)

    def _change(self, name: str, statement: Statement, request: Request) -> Executed:
        """Write a command, again if a command of another server came in between."""
        dropped = self.engine.catalogue.sources.get(getattr(statement, "name", ""))
        done = self._submit(name, statement, request)
        for _ in range(TRIES):
            if isinstance(done.error, Overtaken):
                done = self._submit(name, statement, request)
        if done.error is not None:
            raise done.error
        if isinstance(statement, DropSource) and statement.delete_topic and dropped is not None:
            self._delete_topics([dropped.topic])
            registering.forget(dropped, self.registry)
        return done if done.message else replace(done, message=entities.success(statement, done.plan, dropped))

    def _submit(self, name: str, statement: Statement, request: Request) -> Executed:
        with self.lock:
            plan = self._try(statement, request.properties)
        return self.commands.submit(Command(name, closed(statement.text), dict(request.properties), plan))

    def terminate(self, patterns: Sequence[str], access: Access) -> Executed:
        """End all queries of the service, and delete those of the topics they wrote that have one of these names."""
        with self._changing:
            self.commands.catch_up()
            topics = terminating.topics_of(self.engine, patterns)
            access({topic: {DELETE} for topic in topics})
            done = self.commands.submit(terminating.command(patterns))
            if done.error is not None:
                raise done.error
            self._delete_topics(topics)
        return replace(done, message=terminating.DONE)

    @property
    def is_over(self) -> bool:
        """Whether TERMINATE CLUSTER was executed, and whoever executed it has done everything."""
        return self.terminated and not self._changing.locked()

    def _try(self, statement: Statement, properties: Mapping[str, Any]) -> Plan | None:
        """Execute a statement on a copy of the catalogue, make the topics that it needs, and return its plan."""
        trial = self._trial()
        trial.settings = {**self.settings, **properties}
        missing = self._find_source_topic(statement, trial.catalogue)
        planned = trial.plan(statement)
        if planned is None:
            trial.execute(statement)
            return None
        if planned.query is not None:
            first, *more = (
                with_run(query, trial.catalogue, self.topics, self.registry, self.service_id)
                for query in (planned.query, *planned.more)
            )
            if planned.replaces is not None:
                turns = self.engine.turns.get(planned.replaces, 0)
                first = succeeding(first, self.engine.queries[planned.replaces], turns)
            planned = replace(planned, query=first, more=tuple(more))
        if planned.source is not None:
            registering.register(planned.source, self.registry, again=planned.query is not None)
        if planned.query is not None:
            self._make_sink_topic(planned.query, planned.topic)
        for topic, made, config in missing:
            self.topics.create(topic, made.partitions, made.replicas, config)
        return Plan(planned, self.engine.position)

    def planned(self, statement: Statement, request: Request) -> QueryPlan:
        """Plan the query of a statement without executing it."""
        if isinstance(statement, QueryStatement):
            settings = {**self.settings, **request.properties}
            return plan_push(statement.query, self.engine.catalogue, "transient_EXPLAIN", settings).plan
        trial = self._trial()
        trial.settings = {**self.settings, **request.properties}
        plan = trial.execute(statement)
        if plan is None:
            raise SqlError("The provided statement does not run a ksql query")
        return plan

    def change_of(self, statement: Statement, request: Request) -> Change:
        """Return what a statement would change, without executing it."""
        trial = self._trial()
        trial.settings = dict(request.properties)
        trial.queries = {
            query_id: replace(plan, settings={**plan.settings, RUNTIME: plan.run.runtime})
            for query_id, plan in trial.queries.items()
        }
        return change_of(statement, trial)

    def _trial(self) -> Engine:
        engine, known = self.engine, self.engine.catalogue
        catalogue = Catalogue(
            dict(known.sources),
            dict(known.types),
            dict(known.topics),
            {name: set(ids) for name, ids in known.readers.items()},
            {name: set(ids) for name, ids in known.writers.items()},
            dict(known.views),
        )
        return replace(
            engine,
            settings={},
            catalogue=catalogue,
            queries=dict(engine.queries),
            paused=set(engine.paused),
            turns=dict(engine.turns),
            functions=dict(engine.functions),
            trial=True,
        )

    def _find_source_topic(self, statement: Statement, catalogue: Catalogue) -> list[tuple[str, Topic, dict[str, str]]]:
        """Find the topic of CREATE STREAM or TABLE; return it if it is missing and, with PARTITIONS, is to be made."""
        given = dict(statement.properties) if isinstance(statement, CreateSource) else {}
        topic = given.get("KAFKA_TOPIC")
        if topic is None or not isinstance(statement, CreateSource):
            return []  # the analysis refuses a source without a topic
        missing: list[tuple[str, Topic, dict[str, str]]] = []
        count = self.topics.partitions(str(topic))
        if count == 0:
            if "PARTITIONS" not in given or statement.source:
                raise SqlError(
                    f"Topic '{topic}' does not exist. If you want to create a new topic for the "
                    f"{statement.kind.lower()} please re-run the statement providing the required 'PARTITIONS' "
                    "configuration in the WITH clause (and optionally 'REPLICAS'). For example: CREATE "
                    f"{statement.kind} {statement.name} (...) WITH (KAFKA_TOPIC='{topic}', PARTITIONS=1);"
                )
            replicas = int(given.get("REPLICAS", self.settings.get("ksql.internal.topic.replicas", 1)))
            config = {"cleanup.policy": "compact"} if statement.kind == "TABLE" else {}
            if "RETENTION_MS" in given:
                config["retention.ms"] = str(given["RETENTION_MS"])
            missing = [(str(topic), Topic(int(given["PARTITIONS"]), replicas), config)]
        elif "PARTITIONS" in given and int(given["PARTITIONS"]) != count:
            raise SqlError(
                f"A Kafka topic with the name '{topic}' already exists, with different partition/replica configuration "
                f"than required. KSQL expects {given['PARTITIONS']} partitions (topic has {count})"
            )
        catalogue.topics[str(topic)] = missing[0][1] if missing else Topic(count, self.topics.replicas(str(topic)))
        return missing

    def _make_sink_topic(self, plan: QueryPlan, wanted: Topic | None) -> None:
        topic = plan.sink.topic
        if self.topics.partitions(topic) > 0:
            return
        made = wanted or Topic()
        config = {"cleanup.policy": "compact"} if plan.sink.kind == "TABLE" and plan.sink.window is None else {}
        self.topics.create(topic, made.partitions, made.replicas, config)

    def apply(self, number: int, command: Command) -> Executed:
        """Execute a command that has its place in the order of all commands."""
        with self.lock:
            before, sources = dict(self.engine.queries), dict(self.engine.catalogue.sources)
            self.pulls.forget_plans()
            try:
                plan = replay(self.engine, number, command, self.settings)
                self._note_ended(before, sources)
                self.follow()
            except SqlError as error:
                return self.statuses.noted(command, Executed(number, reason(error), None, error), sources)
            if command.id == TERMINATE_CLUSTER:
                self.terminated = self.live
            elif command.plan is None and isinstance(altered := parse(command.statement)[0], AlterSystem):
                self.settings[altered.name] = altered.value
            return self.statuses.noted(command, Executed(number, "", plan and plan.query_id, plan=plan), sources)

    def follow(self) -> None:
        """Start and stop queries and views so that they are those of the catalogue."""
        plans = self.engine.queries.items() if self.runs() else ()
        self.local.follow({name: plan for name, plan in plans if plan.run.runtime == "local"}, self.engine.paused)
        self.pulls.follow()

    @property
    def running(self) -> dict[str, LocalQuery]:
        return self.local.running

    def close(self) -> None:
        """Stop all queries."""
        with self.lock:
            for results in list(self.pushes.values()):
                results.close()
            self.local.follow({}, ())

    def _note_ended(self, before: Mapping[str, QueryPlan], sources: Mapping[str, Source]) -> None:
        """Remember the topics of queries that have ended, as long as workers have them."""
        self._ended = {name: topics for name, topics in self._ended.items() if self.states.of(name) is not None}
        for plan in (plan for query_id, plan in before.items() if query_id not in self.engine.queries):
            read = {sources[name].topic for name in plan.sources if name in sources}
            self._ended[application_id(plan, self.service_id)] = {plan.sink.topic, *read}

    def _delete_topics(self, topics: Sequence[str]) -> None:
        """Delete topics as soon as workers have let go of them."""
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            with self.lock:
                names = [name for name, used in self._ended.items() if used.intersection(topics)]
            if not any(self.states.of(name) is not None for name in names):
                break
            time.sleep(LOOK_S)
        for topic in topics:
            self.topics.delete(topic)

    # Running queries

    def work(self) -> bool:
        """Let the queries of this process do what there is to do; tell whether there was anything."""
        with self.lock:
            self.follow()
        read = self.pulls.work()
        return self.local.work() or read

    # Rows

    def insert(self, row: Inserted) -> None:
        """Write a row of INSERT ... VALUES, or of a stream of inserts."""
        source = row.source
        try:
            key = key_serde(source.key_format, source.schema.key, None, source.topic, source.name, self.registry)
            value = value_serde(source.value_format, source.stored_value, source.topic, source.name, self.registry)
            record = Produced(
                source.topic,
                None,
                None if row.key is None else key.to_bytes(row.key, Context(source.topic, "key")),
                None if row.value is None else value.to_bytes(row.value, Context(source.topic, "value")),
                row.timestamp,
            )
        except SerdeError as error:
            raise SqlError(f"Failed to insert values into '{source.name}'. {error}") from None
        self.topics.append([record])

    def query(self, request: Request) -> Results:
        """Begin a push or a pull query."""
        try:
            return self._query(request)
        except ServerError as refused:
            if refused.code == BAD_STATEMENT and full_sql.may_answer(self, request):
                return full_sql.answer(self, request, refused)
            raise

    def _query(self, request: Request) -> Results:
        push = False
        try:
            lookup = self.pulls.known(request)
            if lookup is not None and (found := self.pulls.answers([lookup])[0]) is not None:
                if isinstance(found, ServerError):
                    raise found
                return found
            statements = [s for s in self._parsed(request) if not self._prepares(s, request)]
            if len(statements) != 1 or not isinstance(statements[0], QueryStatement):
                raise ServerError(BAD_STATEMENT, "Expected exactly one KSQL statement: a query.", request.text)
            query = statements[0].query
            request.access(uses_of(statements[0], self.engine.catalogue))
            check_dialect(statements[0], str({**self.settings, **request.properties}.get(DIALECT, "")))
            push = query.emit is not None
            if push:
                self.admission.push(len(self.pushes))
                with self.lock:
                    return self._push(query, request)
            with self.admission.pull():
                return self.pulls.answer(query, request)
        except SqlError as error:
            if push:
                raise ServerError(BAD_REQUEST, reason(error)) from None
            raise ServerError(BAD_STATEMENT, reason(error), request.text) from None

    def _prepares(self, statement: Statement, request: Request) -> bool:
        if isinstance(statement, SetProperty | UnsetProperty | Define | Undefine):
            self._execute(statement, request)
            return True
        return False

    def read_once(self, query: Query, request: Request) -> Results:
        """Read a stream from its start to its present end."""
        settings = {**self.settings, **request.properties}
        if not Settings(settings).flag("ksql.query.pull.stream.enabled", True):
            raise SqlError(
                "Pull queries on streams are disabled. To create a push query on the stream, add EMIT CHANGES to the "
                "end. To enable pull queries on streams, set the ksql.query.pull.stream.enabled config to 'true'."
            )
        push = plan_push(query, self.engine.catalogue, self._transient_id(query, "transient"), settings)
        ends = {source.topic: self.topics.ends(source.topic) for source in push.sources}
        return self._pushed(push, request, self.topics.starts, ends)

    def _push(self, query: Query, request: Request) -> Results:
        settings = {**self.settings, **request.properties}
        parts = branches(expand(query, self.engine.catalogue))
        if len(parts) > 1:
            return together([self._push(part, request) for part in parts], query.limit)
        push = plan_push(query, self.engine.catalogue, self._transient_id(query, "transient"), settings)
        if push.scalable:
            query_id = self._transient_id(query, "SCALABLE_PUSH_QUERY")
            push = replace(push, plan=replace(push.plan, query_id=query_id))
            return self._pushed(push, request, self.topics.ends)
        starts = dict(starts_of(push.plan, self.engine.catalogue, self.topics))
        return self._pushed(
            push, request, lambda t: dict(enumerate(starts[t])) if t in starts else self.topics.starts(t)
        )

    def _pushed(
        self,
        push: Push,
        request: Request,
        starts: Callable[[str], Positions],
        ends: dict[str, Positions] | None = None,
    ) -> Results:
        columns = [(name, kind, False) for name, kind in push.columns]
        pushed: list[Pushed] = []
        builder = build_rows(
            push.plan, lambda key, row, time: pushed[0].emit(key, row, time), self.registry, None, self.service_id
        )
        query = LocalQuery(builder, self.topics, starts)
        types = [kind for _, kind in push.columns]
        tombstone = push.tombstone if kind_of(push.plan.step) == "TABLE" else None
        pushed.append(Pushed(query, types, tombstone, push.limit, ends))
        results = Results(push.plan.query_id, columns, list, text=request.text.strip())
        results.poll = lambda: pushed[0].rows(results)
        results.positions = lambda: {topic: dict(reached) for topic, reached in query.positions.items()}

        def close() -> None:
            results.done = True
            self.pushes.pop(push.plan.query_id, None)
            query.close()

        results.close = close
        self.pushes[push.plan.query_id] = results
        return results

    def _transient_id(self, query: Query, prefix: str) -> str:
        name = query.source.name if isinstance(query.source, Table) else "JOIN"
        return f"{prefix}_{name}_{secrets.randbelow(10**18)}"


def closed(text: str) -> str:
    """Return a statement with its semicolon, which the last one of a request may lack."""
    return text if text.endswith(";") else f"{text};"


def _no_registry(topic: str, key: bool, format_: Any, alone: bool) -> Any:
    raise SqlError(
        f"Cannot use the format {format_.name} without a schema registry. "
        "Set 'ksql.schema.registry.url' to its address."
    )

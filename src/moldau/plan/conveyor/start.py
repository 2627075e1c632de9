"""From a plan to a query that can be started: topics are looked up and created, levels become steps of the query."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moldau.plan.conveyor.start_checks import freeze
from moldau.plan.stateless_pass import passing_groups, wall_clock_interval
from moldau.spark import session
from moldau.spark.admin import create_topics, partition_counts_of
from moldau.spark.client_settings import PREFIX, client_settings
from moldau.spark.connections import Client, client_for
from moldau.spark.runner.reporter import Reporter
from moldau.spark.session import STREAMING, Setting, is_local
from moldau.spark.session.private import log_errors_only
from moldau.spark.session.shared import giving_functions

from ..home import CHECKPOINT, home
from ..levels import Schedule, partition_counts
from ..plan import Plan
from ..shards import Conveyed, Instantiated
from ..task import Execution
from ..unrolling import mirrored, unrolled
from . import topics
from .beginning import beginning, check_restorable, has_lost_its_checkpoint, is_stale, stateful
from .datasource import FORMAT, ConveyorDataSource
from .folder import Folder
from .rows import COLUMNS, Places
from .source import BEGIN, COMMITS, GLOBALS, PLACES, TICK, WATCH
from .tally import Tally, fallbacks_of, tally_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SHUFFLE = "spark.sql.shuffle.partitions"
# Java only carries blobs from one Python process to another.
CARRYING = (
    Setting("spark.sql.execution.arrow.maxBytesPerBatch", "1048576", "few blobs at a time stay in the cache"),
    Setting("spark.sql.codegen.wholeStage", "false", "to write code for a few rows takes longer than they do"),
    Setting("spark.sql.codegen.factoryMode", "NO_CODEGEN", "to write code for a few rows takes longer than they do"),
)
SIMPLY = Setting("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1", "the compiler costs more than it saves")
TRIGGERS = tuple(f"{STREAMING}.{package}ProcessingTimeExecutor" for package in ("", "runtime."))  # Spark 4.0, 4.1
NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Application:
    """A plan to run, how it is executed, and where."""

    plan: Plan
    execution: Execution
    client: Mapping[str, str]  # settings of the client, without prefix
    state_dir: str
    exactly_once: bool = True
    interval_ms: int = 100
    batch_records: int = 500_000
    reset: str = "earliest"
    begins: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])  # offsets where it begins
    own: topics.Own = field(default_factory=topics.Own)
    producer: Mapping[str, str] = field(default_factory=dict[str, str])  # settings of the sink, without prefix
    begin: Mapping[str, Any] | None = None  # where it stood in the lane that it comes from
    moves: bool = False  # whether it may have run on other machines meanwhile, and not from the checkpoint here
    packages: str | None = None  # a folder of packages that only its Python workers have
    known: Instantiated | None = None  # with packages: operators cannot be made without them

    @property
    def id(self) -> str:
        assert self.plan.application_id, "an application that runs has an id"
        return self.plan.application_id

    @property
    def home(self) -> str:
        return home(self.state_dir, self.id)

    @property
    def checkpoint(self) -> str:
        return f"{self.home}/{CHECKPOINT}"


class Reported:
    """An application as a query that reports its progress, for a runner that calls it and then `observe`."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._tally: Tally | None = None
        self.reporter = Reporter(application.id, self._client, lambda: fallbacks_of(self._tally))
        self.observe = self.reporter.observe

    def _client(self) -> Client:
        return client_for(client_settings(prefixed(self.application.client)))

    def __call__(self, spark: SparkSession) -> DataStreamWriter:
        self._tally = self._tally or tally_of(spark)
        return definition(self.application, spark, self.reporter, self._tally)


def run(applications: Iterable[Application], spark: SparkSession, **options: Any) -> None:
    """Run applications until SIGTERM or SIGINT; each is restarted after a temporary failure. `options` are those of
    `moldau.spark.run`.
    """
    from moldau.spark.runner import run as run_queries

    queries = {one.id: Reported(one) for one in applications}
    run_queries(queries, spark, observers={name: query.observe for name, query in queries.items()}, **options)


def session_for(name: str, settings: Mapping[str, Any]) -> SparkSession:
    """Return a session. On a cluster the options of the driver's Java are left to its administrators."""
    rows = (*CARRYING, SIMPLY) if is_local(settings.get("spark.master", "local")) else CARRYING
    made = session(name, **{**{row.name: row.value for row in rows}, **settings})
    for trigger in TRIGGERS:  # a batch that takes longer than the interval of commits is none of the user's concern
        log_errors_only(made, trigger)
    return made


def definition(
    application: Application, spark: SparkSession, reporter: Reporter | None = None, tally: Tally | None = None
) -> DataStreamWriter:
    """Return the query, not started. With a reporter it is the reporter, not the source, that commits offsets."""
    client = client_for(client_settings(prefixed(application.client)))
    there = partition_counts_of(client)
    conveyed = scheduled(application, there)
    folder = Folder(spark, application.home)
    arrives = application.moves and is_stale(folder, application, client)
    if arrives:
        check_restorable(application, conveyed, there)
    lost = arrives or has_lost_its_checkpoint(folder, application, conveyed, client, there)
    partitions = int(spark.conf.get(SHUFFLE) or 1)
    places = Places.of(conveyed.schedule, partitions)
    if not lost and not folder.has_batches():
        topics.check_resets(conveyed.schedule.plan)
    freeze(folder, application, conveyed, places, partitions)
    make_topics(application.own, conveyed, client, there)
    options = source_options(application, conveyed, places)
    if reporter is not None:
        options[COMMITS] = "false"
    begin = beginning(folder, conveyed, client, lost, options, application.begin if arrives else None)
    options |= {} if begin is None else {BEGIN: json.dumps(begin)}
    if reporter is not None:
        reporter.begins_at(folder.last_position() or begin)
    with giving_functions(spark):
        spark.dataSource.register(ConveyorDataSource)
    frame = spark.readStream.format(FORMAT).options(**options).load()
    with giving_functions(spark, application.packages):
        frame = laid_out(frame, conveyed, places, tally)
    writer = frame.writeStream.format(FORMAT).outputMode("append").queryName(application.id)
    sink = sink_options(application.id, application.client, application.producer, application.exactly_once)
    writer = writer.options(**sink).option("checkpointLocation", application.checkpoint)
    return writer.trigger(processingTime=f"{application.interval_ms} milliseconds")


def scheduled(application: Application, there: Mapping[str, int]) -> Conveyed:
    """Return the plan with the topics of the cluster."""
    plan = unrolled(topics.with_matches(application.plan, there))
    schedule = Schedule(plan, partition_counts(plan, topics.outside(plan, there)), mirrored(plan))
    settings = client_settings(prefixed(application.client))
    logged = application.exactly_once
    return Conveyed(schedule, application.execution, there, settings, logged, uuid.uuid4().hex, application.known)


def instantiated(application: Application, packages: str) -> Application:
    """Return an application whose operators need packages from a folder, with what others must know of them."""
    client = client_for(client_settings(prefixed(application.client)))
    conveyed = scheduled(application, partition_counts_of(client))
    known = Instantiated(passing_groups(conveyed), wall_clock_interval(conveyed))
    return replace(application, packages=packages, known=known)


def make_topics(rules: topics.Own, conveyed: Conveyed, client: Client, there: Mapping[str, int]) -> None:
    """Create the application's own topics that are missing."""
    schedule = conveyed.schedule
    log = topics.shard_log(schedule) if conveyed.logged and stateful(conveyed) else {}
    own = {**topics.changelogs(schedule, rules), **topics.repartitions(schedule, rules), **log}
    topics.check_counts(own, there)
    missing = {topic: row for topic, row in own.items() if topic not in there}
    create_topics(client, missing, rules.replication)


def laid_out(frame: Any, conveyed: Conveyed, places: Places, tally: Tally | None = None) -> Any:
    from .level import Level, passing

    schedule, passed = conveyed.schedule, passing_groups(conveyed)
    if passed:
        frame = frame.mapInArrow(passing(conveyed, places, passed, tally), COLUMNS)
    for number, groups in enumerate(schedule.levels):
        if not passed.issuperset(groups):
            level = Level(conveyed, places, number, tally)
            frame = frame.groupBy("shard").transformWithStateInPandas(level, COLUMNS, "Append", "None")
    return frame


def source_options(application: Application, conveyed: Conveyed, places: Places) -> dict[str, str]:
    schedule = conveyed.schedule
    tick_ms = wall_clock_interval(conveyed)
    return {
        **prefixed(application.client),
        "subscribe": ",".join(sorted(topic for topic in schedule.reader if topic not in schedule.internal)),
        "startingOffsets": topics.starting(schedule, application.reset, application.begins),
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(application.batch_records),
        "application.id": application.id,
        PLACES: json.dumps(places.to_json()),
        GLOBALS: ",".join(topics.global_topics(schedule.plan)),
        WATCH: str(application.interval_ms),
        **({} if tick_ms is None else {TICK: str(tick_ms)}),
    }


def sink_options(
    name: str, client: Mapping[str, str], producer: Mapping[str, str] = NONE, exactly_once: bool = True
) -> dict[str, str]:
    """Return the options of the sink whose transactions go by a name."""
    return {
        **prefixed(client),
        **producer,
        "application.id": name,
        "processing.guarantee": "exactly_once" if exactly_once else "at_least_once",
        "max.request.size": str(topics.MOST_BYTES),  # what a topic takes is what counts
    }


def prefixed(client: Mapping[str, str]) -> dict[str, str]:
    """Return settings of a client as options of a source or a sink."""
    return {f"{PREFIX}{name}": text for name, text in client.items()}

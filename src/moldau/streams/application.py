"""A topology as an application on Spark, from Kafka's settings.

`run` returns when the application is stopped; `start` returns the running query at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.operators.context import TopologyError
from moldau.plan.conveyor import start as conveyor
from moldau.plan.conveyor.start import Application
from moldau.plan.conveyor.topics import DAY_MS, Own
from moldau.plan.home import STATE_DIR

from .serving import identified, serving
from .settings import client_settings, execution, whole
from .topology import Topology
from .tuning import CONSUMERS, OFFSET_RESET, PRODUCER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GUARANTEES = {"exactly_once_v2": True, "exactly_once": True, "at_least_once": False}
INTERVAL_MS = {True: 100, False: 30_000}  # Kafka's defaults of commit.interval.ms, with exactly_once_v2 and without
REPLICATION, BROKERS = "replication.factor", -1  # the broker's default
MORE_RETENTION, TOPIC = "windowstore.changelog.additional.retention.ms", "topic."
BATCH_RECORDS = "spark.maxOffsetsPerTrigger"


def application(topology: Topology, settings: Mapping[str, Any] | None = None) -> Application:
    """Make the application that the settings describe; those given here override those of the builder."""
    chosen = identified(topology, settings)
    guarantee = str(chosen.get("processing.guarantee", "exactly_once_v2"))
    if guarantee not in GUARANTEES:
        raise TopologyError(f"processing.guarantee is {guarantee!r}: it must be exactly_once_v2 or at_least_once")
    exactly_once = GUARANTEES[guarantee]
    return Application(
        plan=topology.plan(chosen),
        execution=execution(chosen),
        client=client_settings(chosen),
        state_dir=str(chosen.get("state.dir", STATE_DIR)),
        exactly_once=exactly_once,
        interval_ms=whole(chosen, "commit.interval.ms", INTERVAL_MS[exactly_once]),
        batch_records=whole(chosen, BATCH_RECORDS, 500_000),
        reset=offset_reset(chosen),
        own=own_topics(chosen),
        producer=producer_settings(chosen),
    )


def own_topics(settings: Mapping[str, Any]) -> Own:
    """Return the settings of changelogs and of the topics of repartition(name=...)."""
    replication = settings.get(REPLICATION, BROKERS)
    return Own(
        BROKERS if str(replication) == str(BROKERS) else whole(settings, REPLICATION, BROKERS),
        {name.removeprefix(TOPIC): str(value) for name, value in settings.items() if name.startswith(TOPIC)},
        whole(settings, MORE_RETENTION, DAY_MS),
    )


def producer_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of producers that the sink knows; one with a prefix overrides the same one without."""
    names = [(name, prefix + name) for prefix in ("", "producer.") for name in PRODUCER]
    return {name: str(settings[given]) for name, given in names if given in settings}


def offset_reset(settings: Mapping[str, Any]) -> str:
    """Return where an application begins that has never run: by default at the beginning, as in Kafka Streams."""
    names = (OFFSET_RESET, *(prefix + OFFSET_RESET for prefix in CONSUMERS))
    found = next((str(settings[name]) for name in names if name in settings), "earliest")
    if found not in ("earliest", "latest"):
        raise TopologyError(f"{OFFSET_RESET} is {found!r}: it must be earliest or latest")
    return found


def start(
    topology: Topology, settings: Mapping[str, Any] | None = None, spark: SparkSession | None = None
) -> StreamingQuery:
    """Start the query that runs the application."""
    made = application(topology, settings)
    return conveyor.definition(made, spark or session_of(made, settings, topology)).start()


def run(topology: Topology, settings: Mapping[str, Any] | None = None, spark: SparkSession | None = None) -> None:
    """Run the application until SIGTERM or SIGINT. It is restarted after a failure that may be temporary."""
    made = application(topology, settings)
    with serving(topology, settings):
        conveyor.run([made], spark or session_of(made, settings, topology))


def session_of(made: Application, settings: Mapping[str, Any] | None, topology: Topology) -> SparkSession:
    chosen = {**topology.settings, **(settings or {})}
    own = {name: value for name, value in chosen.items() if name.startswith("spark.") and name != BATCH_RECORDS}
    return conveyor.session_for(made.id, own)

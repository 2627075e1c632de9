"""An application at work: a topology on Spark, from Kafka's settings.

`builder.run()` stays until the application is told to stop; `start(builder)` comes back with the running query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.operators.context import TopologyError
from moldau.plan.conveyor import start as conveyor
from moldau.plan.conveyor.start import Application
from moldau.plan.conveyor.topics import DAY_MS, Own
from moldau.plan.home import STATE_DIR

from .serving import serving
from .settings import client_settings, execution, whole
from .topology import Topology
from .tuning import CONSUMERS, OFFSET_RESET, PRODUCER, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GUARANTEES = {"exactly_once_v2": True, "exactly_once": True, "at_least_once": False}
INTERVAL_MS = {True: 100, False: 30_000}  # Kafka's defaults of commit.interval.ms, with exactly_once_v2 and without
REPLICATION, BROKERS = "replication.factor", -1  # the broker's default
MORE_RETENTION, TOPIC = "windowstore.changelog.additional.retention.ms", "topic."
BATCH_RECORDS = "spark.maxOffsetsPerTrigger"


def application(topology: Topology, settings: Mapping[str, Any] | None = None) -> Application:
    """What the settings say, the later ones going before those that the builder was given."""
    chosen = {**topology.settings, **check(settings or {})}
    identity = chosen.get("application.id", topology.application_id)
    if not identity:
        raise TopologyError("an application needs an id: StreamsBuilder('my-app'), or the setting application.id")
    chosen["application.id"] = identity
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
        producer=of_producers(chosen),
    )


def own_topics(settings: Mapping[str, Any]) -> Own:
    """What is said of changelogs and of the topics of repartition(name=...)."""
    said = settings.get(REPLICATION, BROKERS)
    return Own(
        BROKERS if str(said) == str(BROKERS) else whole(settings, REPLICATION, BROKERS),
        {name.removeprefix(TOPIC): str(value) for name, value in settings.items() if name.startswith(TOPIC)},
        whole(settings, MORE_RETENTION, DAY_MS),
    )


def of_producers(settings: Mapping[str, Any]) -> dict[str, str]:
    """What of the settings of producers the sink knows; those with a prefix go before."""
    names = [(name, prefix + name) for prefix in ("", "producer.") for name in PRODUCER]
    return {name: str(settings[given]) for name, given in names if given in settings}


def offset_reset(settings: Mapping[str, Any]) -> str:
    """Where an application begins that never ran: Kafka Streams' default is the beginning."""
    names = (OFFSET_RESET, *(prefix + OFFSET_RESET for prefix in CONSUMERS))
    found = next((str(settings[name]) for name in names if name in settings), "earliest")
    if found not in ("earliest", "latest"):
        raise TopologyError(f"{OFFSET_RESET} is {found!r}: it must be earliest or latest")
    return found


def start(
    topology: Topology, settings: Mapping[str, Any] | None = None, spark: SparkSession | None = None
) -> StreamingQuery:
    """The query that runs the application."""
    made = application(topology, settings)
    return conveyor.definition(made, spark or session_of(made, settings, topology)).start()


def run(topology: Topology, settings: Mapping[str, Any] | None = None, spark: SparkSession | None = None) -> None:
    """Runs the application until SIGTERM or SIGINT; it is started again after a failure that may pass."""
    made = application(topology, settings)
    with serving(topology, settings):
        conveyor.run([made], spark or session_of(made, settings, topology))


def session_of(made: Application, settings: Mapping[str, Any] | None, topology: Topology) -> SparkSession:
    chosen = {**topology.settings, **(settings or {})}
    own = {name: value for name, value in chosen.items() if name.startswith("spark.") and name != BATCH_RECORDS}
    return conveyor.session_for(made, own)

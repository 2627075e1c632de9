# pyright: basic
"""The driver's side of a lane: it takes flows in, lets them be held, resumed and removed, and knows how they are.

`open` is called once, `load` for each version of a flow (it may take seconds, and runs in any thread), `want` with all
flows whenever something has changed. What is told of a flow comes from the last batch that Spark reports, and from the
failures on this machine.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.spark import parcels
from moldau.spark.admin import make_topic, partition_counts_of
from moldau.spark.client_settings import client_settings
from moldau.spark.connections import client_for
from moldau.spark.runner.failures import kind_of, sentence_of
from moldau.spark.session.shared import giving_functions
from moldau.spark.sink.marker_topic import Ledger
from moldau.spark.sink.markers import TOPIC as MARKERS
from moldau.spark.source.planning import LANE, RESTORE, Position

from ..conveyor import topics
from ..conveyor.beginning import check_restorable, drop_if_stale, last_decision, restored_up_to, stateful
from ..conveyor.datasource import source_of
from ..conveyor.folder import Folder
from ..conveyor.rows import Places
from ..conveyor.source import COMMITS, PackedSource
from ..conveyor.start import (
    SHUFFLE,
    Application,
    make_topics,
    prefixed,
    scheduled,
    sink_options,
    source_options,
)
from ..conveyor.start_checks import freeze
from ..hashing import spark_hash
from ..home import CHECKPOINT, FROZEN, home
from ..shards import Conveyed
from ..stateless_pass import passing_groups
from . import crumbs, wanted
from .cargo import Cargo, pack
from .failures import LONGEST, MARK, OF_A_BATCH, Failure, FailureFiles, key_of, leave, of_family
from .failures import TOPIC as FAILURES
from .position import At, Carried, LanePosition
from .rows import LANE_COLUMNS
from .sink import FOLDER, FORMAT, LaneDataSource
from .source import BUDGET, CLIENT, FAMILY, TASKS
from .wanted import Want

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

RECORDS = 500_000  # of a batch, of all flows
INTERVAL_MS = 100
AGAIN = 3
ENDED = "A Python worker ended {} times in a row while it ran code of this flow."


@dataclass(frozen=True, slots=True)
class Loaded:
    """A flow that is ready to be carried: its parcel, and where it begins if the lane does not know it."""

    parcel: str
    begin: At
    keyed: int  # levels with state


@dataclass(slots=True)
class Lane:
    """One lane. `name` stands for it in transactions, `folder` is on this machine, `steps` is how many steps with state
    it has. The serial numbers of flows are those of `family`, which several lanes may be of.
    """

    name: str
    client: Mapping[str, str]
    state_dir: str
    folder: Path
    steps: int
    family: str
    last: LanePosition = field(default_factory=LanePosition)  # the end of the last batch that is known
    inherited: LanePosition = field(default_factory=LanePosition)  # of a checkpoint that is lost
    failures: FailureFiles = field(init=False)
    _spark: SparkSession | None = None
    _suspects: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    _seen: Any = None  # the position that was reported last
    _wanted: dict[int, Want] = field(default_factory=dict[int, Want])

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.failures = FailureFiles(self.folder)

    @property
    def home(self) -> str:
        return home(self.state_dir, self.name)

    @property
    def _settings(self) -> dict[str, str]:
        return client_settings(prefixed(self.client))

    def open(self, spark: SparkSession) -> None:
        """Find out how far the lane has come: by its checkpoint, or, if that is lost, by what its sink has written."""
        self._spark = spark
        client = client_for(self._settings)
        make_topic(client, FAILURES, 1, {"cleanup.policy": "compact"})
        folder, ledger = Folder(spark, self.home), Ledger(client, MARKERS, self.name)
        ledger.catch_up()
        drop_if_stale(folder, ledger.decision)
        if ledger.decision is not None:
            ledger.settle(ledger.decision)  # failures that it has decided are to be seen
        if folder.has_batches():
            found = folder.last_position()
            self.last = self.last if found is None else LanePosition.of_json(found)
        elif ledger.decision is not None:
            self.inherited = LanePosition.of_json(json.loads(ledger.hand_on()))
        leave(self.folder, of_family(self.family, parcels.records_of(client, FAILURES)))
        self.failures.look()

    def load(self, application: Application, serial: int, name: str) -> Loaded:
        """Make the topics of a flow, and a parcel of what it runs. TopologyError if its state cannot be used."""
        assert self._spark is not None
        if serial in self.last.flows and self.known(serial, name) is None:
            self.forget(serial, None)  # failures of what had this number before
        client = client_for(client_settings(prefixed(application.client)))
        there = partition_counts_of(client)
        conveyed = scheduled(application, there)
        partitions = int(self._spark.conf.get(SHUFFLE) or 1)
        places = Places.of(conveyed.schedule, partitions, spark_hash(serial))
        known, stood = self.known(serial, name), self.stood(serial, name)
        before = stood or dict(application.begin or {}) or None
        folder = Folder(self._spark, application.home)
        if before is None:
            topics.check_resets(conveyed.schedule.plan)
        elif known is None:
            check_restorable(application, conveyed, there)
            if stood is None:
                folder.remove(FROZEN)  # of the lane that it comes from, where its shards had other keys
        freeze(folder, application, conveyed, places, partitions)
        make_topics(application.own, conveyed, client, there)
        options = {**source_options(application, conveyed, places), COMMITS: "false"}
        passed = passing_groups(conveyed)
        levels = conveyed.schedule.levels
        keyed = tuple(number for number, groups in enumerate(levels) if not passed.issuperset(groups))
        begin = {} if known is not None else self._begin(application, conveyed, options, before)
        cargo = Cargo(options, passed, keyed, pack(conveyed))
        return Loaded(parcels.put(client, cargo.to_bytes()), begin, len(keyed))

    def _begin(self, application: Application, conveyed: Conveyed, options: dict[str, str], before: At | None) -> At:
        """Return where a flow begins that is new in this lane: where it stood, if it has run before."""
        client = client_for(client_settings(prefixed(application.client)))
        has_run = before is not None or last_decision(client, application) is not None
        at = source_of(options, PackedSource).initialOffset() if before is None else before
        if has_run and stateful(conveyed):
            at = {**at, RESTORE: restored_up_to(conveyed.schedule, client, Position.of_json(at))}
        return at

    def stood(self, serial: int, name: str) -> At | None:
        """Return where a flow stood in the last batch of this lane, also if the checkpoint is lost."""
        found = self.known(serial, name) or self.inherited.carried(serial, name)
        return self.inherited.left.get(serial) if found is None else found.at

    def known(self, serial: int, name: str) -> Carried | None:
        """Return what the last batch says of a flow; None if the lane does not carry it."""
        return self.last.carried(serial, name)

    def planned(self) -> LanePosition:
        """Return the end of the last batch that was planned."""
        assert self._spark is not None
        found = Folder(self._spark, self.home).planned_position()
        return LanePosition() if found is None else LanePosition.of_json(found)

    def want(self, wants: Mapping[int, Want]) -> bool:
        """Say what is wanted of all flows; it takes effect with the next batch. Returns whether that is new."""
        if wants == self._wanted:
            return False
        wanted.write(self.folder, wants)
        self._wanted = dict(wants)
        return True

    def forget(self, serial: int, parcel: str | None) -> None:
        """Remove what there is of a flow that is gone."""
        client = client_for(self._settings)
        for one in self.failures.of(serial):
            parcels.write(client, FAILURES, key_of(self.family, one), None)
        self.failures.forget(serial)
        if parcel is not None:
            parcels.forget(client, parcel)

    def definition(self, spark: SparkSession) -> DataStreamWriter:
        """Return the query, not started."""
        from .steps import LaneLevel, passing

        settings = tuple(sorted(self._settings.items()))
        slots = str(spark.conf.get(SHUFFLE) or 1)
        limits = {BUDGET: str(RECORDS), TASKS: slots}
        options = {CLIENT: json.dumps(dict(settings)), FOLDER: str(self.folder), FAMILY: self.family, **limits}
        with giving_functions(spark):
            spark.dataSource.register(LaneDataSource)
            frame: Any = spark.readStream.format(FORMAT).options(**options).load()
            frame = frame.mapInArrow(passing(settings, str(self.folder), self.family), LANE_COLUMNS)
            for step in range(self.steps):
                grouped = frame.groupBy("flow", "shard")
                frame = grouped.transformWithStateInPandas(
                    LaneLevel(settings, step, str(self.folder), self.family), LANE_COLUMNS, "Append", "None"
                )
        writer = frame.writeStream.format(FORMAT).outputMode("append").queryName(self.name)
        given = {**sink_options(self.name, self.client), FOLDER: str(self.folder)}
        writer = writer.options(**given).option("checkpointLocation", f"{self.home}/{CHECKPOINT}")
        return writer.trigger(processingTime=f"{INTERVAL_MS} milliseconds")

    def blame(self, details: str) -> bool:
        """Find out which flow has ended the query; the batch is done again without it. Returns whether one is to blame.

        An error that may pass is nobody's fault, and a process may be killed by others: only a flow whose code ran in
        processes that ended again and again, without a batch between, is to blame for that.
        """
        found: list[Failure] = []
        self._suspects.update(set(crumbs.left(self.folder)))
        for one, times in self._suspects.items():
            if times >= AGAIN:
                found.append(Failure(*one, OF_A_BATCH, ENDED.format(times), details[:LONGEST]))
        if not kind_of(details).retriable:
            said = dict.fromkeys((int(serial), int(attempt)) for serial, attempt in MARK.findall(details))
            sentence = MARK.sub("", sentence_of(details)).replace(":  ", ": ")
            found += [Failure(*one, OF_A_BATCH, sentence, details[:LONGEST]) for one in said]
        leave(self.folder, [one for one in found if not self.failures.has(one.serial, one.attempt)])
        self.failures.look()
        return bool(found)

    def end_stuck(self) -> None:
        """End Python workers that have been busy with one call of a flow's code for too long."""
        for pid in crumbs.stuck(self.folder, time.time()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def observe(self, progress: Mapping[str, Any] | None) -> None:
        """Note the last batch, and failures."""
        self.failures.look()
        sources = (progress or {}).get("sources") or ()
        text = sources[0].get("endOffset") if sources else None
        if text == self._seen:
            return
        self._seen = text
        document = json.loads(text) if isinstance(text, str) else text
        if document and LANE in document and (found := LanePosition.of_json(document)) != self.last:
            self.last = found
            self._suspects.clear()

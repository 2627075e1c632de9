"""One Spark for all tests: it takes seconds to start. Tests that use it run in one worker of pytest-xdist."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import moldau
from moldau.client import CONTROLLER, Client, Fetcher, Leader, Record, build, check, group, produce, records
from moldau.client import messages as m
from moldau.testing import eventually
from tests.registry.running import running

ROOT = Path(__file__).resolve().parents[2]
# Spark gives a Python process ten seconds to start: too little where tests of others take all processors.
TOO_BUSY = "Python worker failed to connect back"
MASTER = "SPARK_TEST_MASTER"  # names a Spark cluster on this machine, for tests that are not run on two cores of it

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the whole run, on two cores."""
    from moldau.spark import session

    folder = tmp_path_factory.mktemp("spark")
    own = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    started = session("tests", os.environ.get(MASTER, "local[2]"), **own, **of_a_cluster())
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()


def of_a_cluster() -> dict[str, str]:
    """The settings of a session whose tasks run in other processes: they find what this one finds."""
    if MASTER not in os.environ:
        return {}
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.python.daemon.module": "moldau.spark.daemon",  # without it, each Python worker imports for seconds
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(Path(moldau.__file__).parents[1]), str(ROOT)]),
        "spark.sql.shuffle.partitions": "2",
    }


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def drain(checkpoint: str) -> Callable[..., list[Any]]:
    """Reads what a stream has to give until it is at the end, and returns the rows of all batches."""

    def run(stream: Any) -> list[Any]:
        rows: list[Any] = []
        writer = stream.writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
        to_its_end(lambda: writer.option("checkpointLocation", checkpoint))
        return rows

    return run


def to_its_end(writer: Callable[[], Any]) -> None:
    """Run a query until it has read all there is; anew where the machine was too busy for it."""
    for patience in range(9, -1, -1):
        query = writer().trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(400), "the query does not come to its end"
            return
        except StreamingQueryException as error:
            if not patience or TOO_BUSY not in str(error):
                raise
        finally:
            query.stop()


class Cluster:
    """The cluster that the tests run on, and topics made in it."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.client = Client({"bootstrap.servers": servers})

    def topic(self, partitions: int = 1, name: str | None = None, **config: Any) -> str:
        """Its records stay, whatever their time: a broker that looks at their age does so every five minutes."""
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        given = {"retention.ms": -1, **{key.replace("_", "."): value for key, value in config.items()}}
        rows = [m.CreateTopicsRequest_CreatableTopicConfig(key, str(value)) for key, value in given.items()]
        new = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, configs=rows)
        check(self.client.send(m.CreateTopicsRequest([new], timeout_ms=10_000), to=CONTROLLER))
        eventually(lambda: name in self.client.refresh([name]).topics, what=name)
        return name

    def delete(self, name: str) -> None:
        gone = m.DeleteTopicsRequest_DeleteTopicState(name)
        check(self.client.send(m.DeleteTopicsRequest([gone], timeout_ms=10_000), to=CONTROLLER))
        eventually(lambda: name not in self.client.refresh([name]).topics, what=name)

    def more_partitions(self, name: str, count: int) -> None:
        row = m.CreatePartitionsRequest_CreatePartitionsTopic(name, count, None)
        check(self.client.send(m.CreatePartitionsRequest([row], timeout_ms=10_000), to=CONTROLLER))
        eventually(lambda: len(self.client.refresh([name]).topics[name].partitions) == count, what=name)

    def put(self, topic: str, *values: str | Record, partition: int = 0, **batch: Any) -> int:
        """Write values in one batch and return the offset of the first."""
        items = [one if isinstance(one, Record) else Record(timestamp=1, value=one.encode()) for one in values]
        offset = produce(self.client, topic, partition, build(items, **batch)).base_offset
        assert offset is not None
        return offset

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        row = m.DeleteRecordsRequest_DeleteRecordsPartition(partition, offset)
        wanted = m.DeleteRecordsRequest_DeleteRecordsTopic(topic, [row])
        check(self.client.send(m.DeleteRecordsRequest([wanted], timeout_ms=10_000), to=Leader(topic, partition)))

    def committed(self, name: str) -> dict[tuple[str, int], int]:
        """The offsets of a group."""
        asked = m.OffsetFetchRequest(groups=[m.OffsetFetchRequest_OffsetFetchRequestGroup(name, topics=None)])
        answer = check(self.client.send(asked, to=group(name), at_most=9))
        return {
            (topic.name, row.partition_index): row.committed_offset
            for topic in answer.groups[0].topics
            for row in topic.partitions
        }

    def committed_rows(self, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None, int]]:
        """Key, value and time of all there is: markers of transactions have today's time, so each may begin a segment,
        and a fetch ends with a segment.
        """
        fetcher, offset, rows = Fetcher(self.client, isolation_level="read_committed"), 0, []
        while True:
            found = fetcher.fetch({(topic, partition): offset}, max_wait_ms=0)[topic, partition]
            rows += [(one.key, one.value, one.timestamp) for batch in found.committed() for one in records(batch)]
            offset = found.next_offset(offset)
            if offset >= found.last_stable_offset:
                return rows

    def read(self, spark: SparkSession, topic: str | None = None, **options: Any) -> Any:
        return self._source(spark.read, topic, options).load()

    def stream(self, spark: SparkSession, topic: str | None = None, **options: Any) -> Any:
        return self._source(spark.readStream, topic, {"startingOffsets": "earliest", **options}).load()

    def _source(self, reader: Any, topic: str | None, options: dict[str, Any]) -> Any:
        reader = reader.format("moldau").option("kafka.bootstrap.servers", self.servers)
        return reader.options(**({"subscribe": topic} if topic else {}), **options)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Moldau, or the cluster that CONFORMANCE_BOOTSTRAP names."""
    servers = os.environ.get("CONFORMANCE_BOOTSTRAP") or request.getfixturevalue("kafka_shared").bootstrap_servers
    made = Cluster(servers)
    yield made
    made.client.close()


@pytest.fixture(scope="session")
def url(cluster: Cluster) -> Iterator[str]:
    """Of a registry of that cluster."""
    with running(cluster.servers) as registry:
        yield registry.url

"""DescribeLogDirs and AlterReplicaLogDirs: what lies where, and that it stays there."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build


def describe(world, topics=None, version=5):
    rows = None
    if topics is not None:
        rows = [m.DescribeLogDirsRequest_DescribableLogDirTopic(*topic) for topic in topics]
    return world.call(m.DescribeLogDirsRequest(rows), version)


def partitions(result):
    return {(t.name, p.partition_index): p.partition_size for t in result.topics for p in t.partitions}


def produce(world, name):
    batch = bytes(build([Record(0, world.clock.wall_ms(), None, b"x")]))
    rows = [m.ProduceRequest_PartitionProduceData(0, batch)]
    world.call(m.ProduceRequest(None, -1, 1000, [m.ProduceRequest_TopicProduceData(name, partition_data=rows)]), 9)
    return len(batch)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_each_partition_has_its_size(world, version):
    world.create("t", 2)
    size = produce(world, "t")
    answer = describe(world, version=version)
    (result,) = answer.results
    assert (answer.error_code, result.error_code, result.log_dir) == (0, 0, str(world.path))
    assert partitions(result) == {("t", 0): size, ("t", 1): 0}
    assert (0 < result.usable_bytes <= result.total_bytes) == (version >= 4)
    row = result.topics[0].partitions[0]
    assert (row.offset_lag, row.is_future_key, result.is_cordoned) == (0, False, False)


def test_only_what_is_asked_for_is_told(world):
    world.create("t", 2)
    world.create("u")
    (result,) = describe(world, [("t", [1, 9]), ("unknown", [0]), ("u", [])]).results
    assert partitions(result) == {("t", 1): 0}
    (result,) = describe(world, []).results
    assert (result.topics, result.total_bytes > 0) == ([], True)


def test_a_failed_directory_is_told(world):
    world.create("t")
    world.node.replicas.directories[0].fail("broken")
    (result,) = describe(world).results
    assert (result.error_code, result.topics) == (Error.KAFKA_STORAGE_ERROR, [])
    assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def alter(world, *rows, version=2):
    dirs = [
        m.AlterReplicaLogDirsRequest_AlterReplicaLogDir(
            path, [m.AlterReplicaLogDirsRequest_AlterReplicaLogDirTopic(*topic) for topic in topics]
        )
        for path, topics in rows
    ]
    answer = world.call(m.AlterReplicaLogDirsRequest(dirs), version)
    return {(t.topic_name, p.partition_index): p.error_code for t in answer.results for p in t.partitions}


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_stays_where_it_lies(world, version):
    world.create("t", 2)
    here = str(world.path)
    assert alter(world, (here, [("t", [0, 9]), ("unknown", [0])]), version=version) == {
        ("t", 0): Error.NONE,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("unknown", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for path in ("/nowhere", "relative", "", f"{here}/"):
        assert alter(world, (path, [("t", [0]), ("unknown", [0])]), version=version) == {
            ("t", 0): Error.LOG_DIR_NOT_FOUND,
            ("unknown", 0): Error.LOG_DIR_NOT_FOUND,
        }


def test_of_a_partition_named_twice_the_last_path_counts(world):
    world.create("t")
    here = str(world.path)
    assert alter(world, (here, [("t", [0])]), ("/nowhere", [("t", [0])])) == {("t", 0): Error.LOG_DIR_NOT_FOUND}
    assert alter(world, ("/nowhere", [("t", [0])]), (here, [("t", [0])])) == {("t", 0): Error.NONE}
    assert alter(world) == {}


def test_a_replica_is_moved_to_another_directory(make_world, tmp_path):
    paths = [str(tmp_path / name) for name in ("a", "b")]
    world = make_world(log_dirs=",".join(paths))
    world.create("t", 2)
    homes = {}
    for result in describe(world).results:
        homes |= dict.fromkeys(partitions(result), result.log_dir)
    assert sorted(homes.values()) == paths
    other = paths[1 - paths.index(homes["t", 0])]
    assert alter(world, (homes["t", 0], [("t", [0])])) == {("t", 0): Error.NONE}
    assert alter(world, (other, [("t", [0])])) == {("t", 0): Error.NONE}
    world.advance(100)
    (found,) = [one for one in describe(world).results if one.log_dir == other]
    assert sorted(partitions(found)) == [("t", 0), ("t", 1)]

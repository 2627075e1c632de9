"""Tasks and drivers that die anywhere: every row is in the topic once, for readers of committed records."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.client import CONTROLLER, Client, ClientError, Error, check, messages
from moldau.spark.connections import client_for
from moldau.spark.sink.marker_topic import Ledger, resumed
from moldau.spark.sink.markers import TOPIC, Refused, task_key
from moldau.spark.sink.options import SinkOptions
from moldau.spark.sink.place import Place
from moldau.spark.sink.task import run
from moldau.spark.sink.writers import abort, commit
from tests.spark.conftest import Cluster
from tests.spark.sinks import Query, committed, frame

names = itertools.count()


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client({"bootstrap.servers": cluster.servers}) as made:
        yield made


@pytest.fixture
def query(cluster: Cluster) -> Query:
    return new_query(cluster)


def new_query(cluster: Cluster, **options: str) -> Query:
    topic = cluster.topic(partitions=2)
    given = {name.replace("_", "."): value for name, value in options.items()}
    return Query(cluster.servers, topic, f"query-{next(names)}", given)


def test_rows_of_all_tasks_are_there_when_the_driver_has_committed(query: Query, client: Client) -> None:
    done = query.tasks(0, [["a", "b"], ["c"], []])
    assert done[2].transaction is None
    commit(query.sink, done)
    query.whole(1, [["d"], ["e"]])
    assert committed(client, query.topic) == Counter("abcde")


def test_a_batch_that_no_driver_decided_is_written_again_and_is_there_once(query: Query, client: Client) -> None:
    query.tasks(0, [["a"], ["b"]])
    query.whole(0, [["a"], ["b"]])
    assert committed(client, query.topic) == Counter("ab")


def test_a_decided_batch_is_completed_by_its_replay_whatever_tasks_that_has(query: Query, client: Client) -> None:
    done = query.tasks(0, [["a"], ["b"], ["c"]])
    query.half(client, done, ended=[1])
    query.whole(0, [["a", "b", "c"]])
    query.whole(1, [["d"], ["e"], ["f"], ["g"]])
    assert committed(client, query.topic) == Counter("abcdefg")


def test_of_a_torn_batch_what_is_missing_is_written(query: Query, client: Client) -> None:
    done = query.tasks(0, [["a"], ["b"], ["c"]])
    query.half(client, done, ended=[1])
    query.lose(client, done, [0, 2])
    query.whole(0, [["a"], ["b"], ["c"]])
    assert committed(client, query.topic) == Counter("abc")


@pytest.mark.parametrize("rows", [[["a", "b", "c"]], [["a"], ["b"], ["c"], ["d"]]])
def test_a_torn_batch_with_another_number_of_tasks_is_refused(query: Query, client: Client, rows: list) -> None:
    done = query.tasks(0, [["a"], ["b"]])
    query.half(client, done, ended=[0])
    query.lose(client, done, [1])
    with pytest.raises(Refused, match=r"written in part by 2 tasks|had 1 rows"):
        query.whole(0, rows)
    assert committed(client, query.topic) == Counter("a")


def test_a_torn_batch_with_rows_divided_otherwise_is_refused(query: Query, client: Client) -> None:
    done = query.tasks(0, [["a", "x"], ["b", "y"]])
    query.half(client, done, ended=[0])
    query.lose(client, done, [1])
    with pytest.raises(Refused, match="task 0 of batch 0, which was written in part"):
        query.whole(0, [["a", "b"], ["x", "y"]])


def test_a_task_that_runs_twice_in_a_batch_adds_nothing(query: Query, client: Client) -> None:
    first = query.task(0, 0, ["a"])
    second = query.task(0, 0, ["a"])
    commit(query.sink, [second])
    assert committed(client, query.topic) == Counter("a")
    with pytest.raises(ClientError):
        commit(query.sink, [query.task(1, 0, ["b"]), first])


def test_an_attempt_that_was_replaced_cannot_be_committed_and_the_replay_is_whole(query: Query, client: Client) -> None:
    first, other = query.task(0, 0, ["a"]), query.task(0, 1, ["b"])
    query.task(0, 0, ["a"])  # a speculative attempt, later
    with pytest.raises(ClientError, match="not committed whole"):
        commit(query.sink, [first, other])
    abort(query.sink, [first, other])  # as Spark does
    query.whole(0, [["a"], ["b"]])
    assert committed(client, query.topic) == Counter("ab")


def test_what_failed_is_aborted_and_what_was_decided_is_not(query: Query, client: Client) -> None:
    done = query.tasks(0, [["a"], ["b"]])
    abort(query.sink, done)
    assert committed(client, query.topic) == Counter()
    done = query.tasks(0, [["a"], ["b"]])
    query.half(client, done, ended=[0])
    abort(query.sink, done)
    query.whole(0, [["b"], ["a"]])
    assert committed(client, query.topic) == Counter("ab")


def test_a_driver_that_was_replaced_adds_nothing(query: Query, client: Client) -> None:
    old = query.tasks(0, [["a"], ["b"]])
    query.whole(0, [["a"], ["b"]])
    query.whole(1, [["c"], ["d"]])
    with pytest.raises(Refused, match="has written batch 1 already"):
        commit(query.sink, old)
    with pytest.raises(Refused, match="has written batch 1 already"):
        query.task(0, 0, ["a"])
    query.whole(2, [["e"]])
    assert committed(client, query.topic) == Counter("abcde")


def test_a_new_checkpoint_under_an_old_name_is_refused_with_the_command_that_helps(
    cluster: Cluster, client: Client
) -> None:
    query = new_query(cluster, application_id=f"app-{next(names)}", checkpointLocation="/there")
    query.whole(4, [["a"]])
    lost = Query(query.bootstrap, query.topic, "another", query.options)
    with pytest.raises(Refused, match=rf"batch 4 of query {query.id}.*/there.*moldau spark resume {query.application}"):
        lost.whole(0, [["a"]])
    assert committed(client, query.topic) == Counter("a")


def test_an_application_that_was_handed_on_is_no_longer_the_old_querys(cluster: Cluster, client: Client) -> None:
    query = new_query(cluster, application_id=f"app-{next(names)}")
    query.whole(0, [["a"]])
    late = query.tasks(1, [["b"], ["c"]])
    ledger = Ledger(client, TOPIC, query.application)
    ledger.catch_up()
    assert ledger.decision is not None
    ledger.decide(replace(ledger.decision, offsets=('{"in":{"0":1}}',)))
    assert resumed(client, TOPIC, query.application) == {"in": {"0": 1}}
    assert resumed(client, TOPIC, query.application) == {"in": {"0": 1}}  # a new query that dies at once comes again
    with pytest.raises(Refused, match="was handed on after batch 0"):
        commit(query.sink, late)
    query.half(client, late, [])  # even if it had not looked
    new = Query(query.bootstrap, query.topic, "another", query.options)
    new.whole(0, [["b", "c"]])
    assert committed(client, query.topic) == Counter("abc")
    assert resumed(client, TOPIC, "an application that never was") is None


def test_a_marker_outlives_the_transactional_id(query: Query, client: Client) -> None:
    """A broker forgets an id that is not used for a week; a record under the same id and another producer follows."""
    done = query.tasks(0, [["a"]])
    commit(query.sink, done)
    ledger = Ledger(client, TOPIC, query.application)
    ledger.catch_up()
    assert ledger.marker(0) is not None
    other = Query(query.bootstrap, query.topic, query.id, query.options)
    other.whole(0, [["a"]])
    assert committed(client, query.topic) == Counter("a")


def test_a_first_batch_that_is_replayed_begins_where_it_began(cluster: Cluster, client: Client, tmp_path: Path) -> None:
    """Spark asks the source again where it begins, when the driver died between a decision and its own commit."""
    checkpoints = [tmp_path / "first", tmp_path / "second"]
    for end, folder in enumerate(checkpoints, 1):
        (folder / "offsets").mkdir(parents=True)
        (folder / "offsets" / "0").write_text(f'v1\n{{}}\n{{"in":{{"0":{end}}}}}')
    query = new_query(cluster, application_id=f"app-{next(names)}", checkpointLocation=str(checkpoints[0]))
    query.whole(0, [["a"]])
    assert resumed(client, TOPIC, query.application) is None  # as the options say, again
    query.whole(0, [["a"]])
    shutil.rmtree(checkpoints[0])
    assert resumed(client, TOPIC, query.application) == {"in": {"0": 1}}
    new = Query(query.bootstrap, query.topic, "another", query.options | {"checkpointLocation": str(checkpoints[1])})
    for _ in range(2):
        new.whole(0, [["b"]])
        assert resumed(client, TOPIC, query.application) == {"in": {"0": 1}}
    new.whole(1, [["c"]])
    assert committed(client, query.topic) == Counter("abc")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whoever_dies_when_every_row_is_there_once(cluster: Cluster, client: Client, data: st.DataObject) -> None:
    query = new_query(cluster)
    count = data.draw(st.integers(1, 3), "tasks")
    for batch in range(data.draw(st.integers(1, 3), "batches")):
        rows = [[f"{batch}-{task}-{row}" for row in range(2)] for task in range(count)]
        for _ in range(data.draw(st.integers(0, 2), "crashes")):
            begun = data.draw(st.integers(0, count), "tasks that ran")
            done = query.tasks(batch, rows[:begun])
            if begun < count:
                continue
            numbers = st.lists(st.integers(0, count - 1), unique=True)
            match data.draw(st.sampled_from(["undecided", "aborted", "decided", "torn"])):
                case "aborted":
                    abort(query.sink, done)
                case "decided":
                    query.half(client, done, data.draw(numbers, "ended"))
                case "torn":
                    query.half(client, done, data.draw(numbers, "ended"))
                    query.lose(client, done, data.draw(numbers, "lost"))
        query.whole(batch, rows)
        expected = Counter(f"{b}-{t}-{r}" for b in range(batch + 1) for t in range(count) for r in range(2))
        assert committed(client, query.topic) == expected


def test_at_least_once_needs_no_transactions_and_no_markers(cluster: Cluster, client: Client) -> None:
    query = new_query(cluster, processing_guarantee="at_least_once", markers_topic="never")
    query.whole(0, [["a"], ["b"]])
    query.whole(0, [["a"], ["b"]])
    assert committed(client, query.topic) == Counter("aabb")
    assert "never" not in client.refresh(None).topics


def test_a_job_without_a_name_leaves_no_markers(cluster: Cluster, client: Client) -> None:
    query = new_query(cluster, markers_topic="never")
    commit(query.sink, [run(query.sink, Place("job-1", None, 0, task), frame(["a"])) for task in range(2)])
    assert committed(client, query.topic) == Counter("aa")
    assert "never" not in client.refresh(None).topics


def test_a_transaction_that_takes_too_long_says_which_setting_to_raise(cluster: Cluster, client: Client) -> None:
    query = new_query(cluster, transaction_timeout_ms="1")

    def slowly() -> Iterator[pa.RecordBatch]:
        yield frame(["a"])[0]
        query.lose(client, [one], [0])
        yield from frame(["b"] * 100_000)

    place = Place(query.application, query.id, 0, 0)
    one = run(SinkOptions.of({**query_options(query), "transaction.timeout.ms": "60000"}), place, frame(["x"]))
    with pytest.raises(ClientError, match=r"longer than transaction.timeout.ms=1: raise that"):
        run(query.sink, place, slowly())


def query_options(query: Query) -> dict[str, str]:
    return {"kafka.bootstrap.servers": query.bootstrap, "topic": query.topic}


def test_a_time_out_that_the_broker_does_not_allow_is_told(cluster: Cluster) -> None:
    query = new_query(cluster, transaction_timeout_ms="2h")
    with pytest.raises(Refused, match=r"does not allow transactions of 7200000 ms.*transaction.max.timeout.ms"):
        query.whole(0, [["a"]])


def test_a_topic_of_markers_that_would_forget_them_is_refused(cluster: Cluster) -> None:
    topic = cluster.topic()
    query = new_query(cluster, markers_topic=topic)
    with pytest.raises(Refused, match=r"cleanup.policy=delete, and would forget"):
        query.whole(0, [["a"]])


def test_the_topic_of_markers_is_compacted(query: Query, client: Client) -> None:
    query.whole(0, [["a"]])
    resource = messages.DescribeConfigsRequest_DescribeConfigsResource(2, TOPIC, ["cleanup.policy"])
    answer = check(client.send(messages.DescribeConfigsRequest([resource])))
    assert answer.results[0].configs[0].value == "compact"


def test_a_topic_of_markers_that_is_made_again_is_read_from_its_beginning(cluster: Cluster, client: Client) -> None:
    query = new_query(cluster, markers_topic=f"markers-{next(names)}")
    query.options["kafka.topic.metadata.propagation.max.ms"] = "1500"
    query.whole(0, [["a"]])
    client = client_for({"bootstrap.servers": query.bootstrap, "topic.metadata.propagation.max.ms": "1500"})
    ledger = Ledger(client, query.sink.markers, query.application)
    ledger.catch_up()
    check(client.send(messages.DeleteTopicsRequest([messages.DeleteTopicsRequest_DeleteTopicState(query.sink.markers)],
                                                   timeout_ms=9000), CONTROLLER))  # fmt: skip
    query.whole(1, [["b"]])
    ledger.catch_up()
    assert ledger.decision is not None
    assert ledger.decision.batch == 1


def test_a_record_that_the_topic_does_not_take_is_refused_with_its_name(cluster: Cluster) -> None:
    topic = cluster.topic(max_message_bytes=2000)
    query = Query(cluster.servers, topic, "small")
    query.whole(0, [["x" * 300] * 20])  # many batches
    with pytest.raises(ValueError, match=rf"topic {topic} has \d+ bytes, and 2000 is the limit"):
        query.whole(1, [["x" * 3000]])


def test_a_topic_that_is_not_there_is_told(cluster: Cluster) -> None:
    query = Query(cluster.servers, "no such topic", "none")
    query.options["kafka.allow.auto.create.topics"] = "false"
    query.options["kafka.topic.metadata.propagation.max.ms"] = "100"
    with pytest.raises(ClientError) as caught:
        query.whole(0, [["a"]])
    assert caught.value.error in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION)


def test_keys_of_markers_name_application_and_task() -> None:
    assert task_key("a", 3) == b'["task","a",3]'


def test_a_topic_that_was_made_again_gets_what_comes_after(query: Query, cluster: Cluster) -> None:
    query.whole(0, [["a"], ["b"]])
    cluster.delete(query.topic)
    cluster.topic(3, query.topic)
    query.whole(1, [["c"], ["d"]])
    assert committed(cluster.client, query.topic) == Counter("cd")


def test_transactions_that_tasks_left_open_do_not_hold_up_readers_once_a_batch_is_through(
    query: Query, client: Client
) -> None:
    query.tasks(0, [["a"], ["b"], ["c"]])  # these die with their driver
    again = Query(query.bootstrap, query.topic, query.id, query.options, run="second")
    again.whole(0, [["a", "b", "c"]])
    assert committed(client, query.topic) == Counter("abc")

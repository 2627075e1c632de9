"""Commands with their plans: what is written is what is run, in one order, whoever reads it."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from moldau.flows.definition import Definition, Wanted
from moldau.flows.lanes import lane_of
from moldau.operators.context import Shard
from moldau.operators.record import Produced, Raw
from moldau.operators.stores.ordered import MemoryBytes
from moldau.plan.conveyor import topics as conveyor_topics
from moldau.plan.levels import Schedule, partition_counts
from moldau.plan.shards import Conveyed
from moldau.plan.stateless_pass import passing_groups
from moldau.plan.task import Task, World
from moldau.plan.unrolling import mirrored, unrolled
from moldau.spark.source.options import EARLIEST
from moldau.sql.cases.files import Case, read_file
from moldau.sql.cases.running import queries_of
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.functions import cases as case_functions
from moldau.sql.functions.python_functions import FILES, load_folder, unload
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.lowering import build
from moldau.sql.lowering.levels import levels_of
from moldau.sql.persistent.functions import builder_of, written
from moldau.sql.persistent.kind import RemoteRegistry, registry_of
from moldau.sql.persistent.reader import definitions, give_serials, removed
from moldau.sql.plan_json import decoded, encoded
from moldau.sql.server.commands import Command, Executed, MemoryCommands, Overtaken, replay
from moldau.sql.server.errors import ServerError
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import MemoryTopics
from moldau.streams.application import execution

PAY = "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON', partitions=2);"
SPEND = "CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;"
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
PARTITIONS = 4


class Log:
    """A command topic in memory, of any number of services."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes]] = []
        self.services: list[Service] = []

    def join(self, **settings: Any) -> Service:
        def submit(command: Command) -> Executed:
            self.records.append((command.key(), command.value()))
            number = len(self.records) - 1
            done = [each.apply(number, Command.of(*self.records[number])) for each in self.services]
            return done[self.services.index(made)]

        topics = self.services[0].topics if self.services else MemoryTopics()
        made = Service(topics, settings=settings, commands=lambda _: MemoryCommands(lambda _, command: submit(command)))
        for number, record in enumerate(self.records):
            made.apply(number, Command.of(*record))
        self.services.append(made)
        return made


def do(service: Service, *statements: str, **properties: Any) -> list[dict[str, Any]]:
    return service.execute(Request(" ".join(statements), properties))


def text_of(engine: Engine) -> str:
    return json.dumps(encoded((engine.catalogue, engine.queries, engine.paused)))


def positive(file: Path) -> list[Case]:
    return [case for case in read_file(file) if case.expected is None]


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_plan_is_the_same_after_the_topic_and_its_levels_are_those_of_spark(file: Path) -> None:
    case_functions.install()
    try:
        for case in positive(file):
            plans, registry = queries_of(case)
            for plan in plans:
                assert decoded(json.loads(json.dumps(encoded(plan)))) == plan, case.name
                builder = build(plan, registry)
                assert levels_of(builder, lambda _: PARTITIONS) == levels_on_spark(builder), case.name
    finally:
        case_functions.uninstall()


def scheduled(builder: Any) -> Schedule:
    topology = builder.build()
    plan = unrolled(topology.plan(topology.settings))
    there = dict.fromkeys(conveyor_topics.missing(plan, ()), PARTITIONS)
    return Schedule(plan, partition_counts(plan, conveyor_topics.outside(plan, there)), mirrored(plan))


def levels_on_spark(builder: Any) -> int:
    """What a lane counts when it loads the query."""
    schedule = scheduled(builder)
    passed = passing_groups(Conveyed(schedule, execution(builder.build().settings)))
    return sum(not passed.issuperset(groups) for groups in schedule.levels)


def test_document_that_names_another_class_is_refused() -> None:
    for node in ({"@": "Popen", "args": ["ls"]}, {"@": "Read"}, {}, {"@": "decimal"}):
        with pytest.raises(ValueError, match="cannot be read"):
            decoded(node)
    with pytest.raises(TypeError, match="object is not a part of a plan"):
        encoded(object())


def test_plan_of_a_later_release_is_no_command() -> None:
    value = json.dumps({"statement": "x", "plan": {"@type": "moldauPlanV2"}}).encode()
    with pytest.raises(ValueError, match="moldauPlanV2"):
        Command.of(b'"a"', value)


def test_what_runs_is_what_was_planned_and_not_what_the_text_says() -> None:
    log = Log()
    do(log.join(), PAY, SPEND)
    key, value = log.records[1]
    document = json.loads(value)
    document["statement"] = "this release cannot read it;"
    log.records[1] = key, json.dumps(document).encode()
    late = log.join()
    assert text_of(late.engine) == text_of(log.services[0].engine)
    assert list(late.engine.queries) == ["CTAS_SPEND_1"]


def test_replay_gives_the_same_catalogue_though_topics_are_gone() -> None:
    log = Log()
    first = log.join()
    do(first, PAY, SPEND, "CREATE TYPE money AS DECIMAL(9, 2);", "PAUSE CTAS_SPEND_1;")
    do(first, "CREATE STREAM copy AS SELECT * FROM pay WHERE amount > 1;", "TERMINATE CSAS_COPY_4;")
    engine = Engine()
    for number, record in enumerate(log.records):
        replay(engine, number, Command.of(*record), {})
    assert text_of(engine) == text_of(first.engine) == text_of(log.join().engine)


def test_plan_that_was_overtaken_is_made_anew() -> None:
    log = Log()
    one, two = log.join(), log.join()
    do(one, PAY)
    tried, two._try = two._try, lambda *given: overtaken(*given)  # type: ignore[method-assign]

    def overtaken(*given: Any) -> Any:
        plan = tried(*given)
        two._try = tried  # type: ignore[method-assign]
        do(one, "CREATE STREAM mine AS SELECT * FROM pay;")
        return plan

    (answer,) = do(two, SPEND)
    assert answer["commandStatus"]["queryId"] == "CTAS_SPEND_3", "the second of two"
    assert text_of(one.engine) == text_of(two.engine)
    assert sorted(one.engine.queries) == ["CSAS_MINE_1", "CTAS_SPEND_3"]
    with pytest.raises(Overtaken):
        replay(Engine(), 0, Command.of(*log.records[3]), {})


def test_two_servers_cannot_both_create_a_name() -> None:
    log = Log()
    one, two = log.join(), log.join()
    do(one, PAY, SPEND)
    with pytest.raises(ServerError, match="already exists"):
        do(two, SPEND)
    assert len(log.records) == 2, "nothing was written for it"


def test_refused_statement_makes_no_topic() -> None:
    service = Log().join()
    with pytest.raises(ServerError):
        do(service, "CREATE STREAM s (a INT, a INT) WITH (kafka_topic='new', value_format='JSON', partitions=1);")
    assert service.topics.names() == []


def test_topic_that_was_deleted_once_is_not_deleted_by_a_later_server() -> None:
    log = Log()
    first = log.join()
    do(
        first,
        PAY,
        "CREATE STREAM copy AS SELECT * FROM pay;",
        "TERMINATE CSAS_COPY_1;",
        "DROP STREAM copy DELETE TOPIC;",
    )
    assert first.topics.names() == ["pay"]
    do(first, "CREATE STREAM copy AS SELECT * FROM pay;")
    log.join()
    assert first.topics.names() == ["COPY", "pay"]


def test_query_on_spark_begins_where_its_topics_ended_and_is_not_run_here() -> None:
    service = Log().join(**{"ksql.runtime": "spark"})
    do(service, PAY, "INSERT INTO pay VALUES ('a', 1);", "INSERT INTO pay VALUES ('b', 1);", SPEND)
    (plan,) = service.engine.queries.values()
    ends = service.topics.ends("pay")
    assert plan.run.runtime == "spark" and plan.run.levels == 1
    assert plan.run.starts == (("pay", (ends[0], ends[1])),) and sum(ends.values()) == 2
    assert not service.work() and service.running == {}
    begins = conveyor_topics.starting(scheduled(build(plan)), "earliest", dict(plan.run.starts))
    assert json.loads(begins) == {"pay": {"0": ends[0], "1": ends[1], "2": EARLIEST, "3": EARLIEST}}, "two are new"
    (shown,) = do(service, "SHOW QUERIES;")
    assert shown["queries"][0]["state"] == "UNRESPONSIVE:1" and "moldau worker" in shown["warnings"][0]["message"]


@pytest.mark.parametrize(
    ("statement", "properties", "sentence"),
    [
        (SPEND, {"ksql.runtime": "moon"}, "must be spark or local"),
        ("CREATE STREAM \"../up\" WITH (kafka_topic='up') AS SELECT * FROM pay;", {}, "cannot run on Spark"),
        ("CREATE STREAM s AS SELECT card, TEST_UDF(amount, 1) AS x FROM pay;", {}, "TEST_UDF is not in a file"),
    ],
)
def test_what_workers_cannot_run_is_refused(statement: str, properties: dict[str, Any], sentence: str) -> None:
    case_functions.install()
    try:
        service = Log().join(**{"ksql.runtime": "spark"})
        do(service, PAY)
        with pytest.raises(ServerError, match=sentence):
            do(service, statement, **properties)
        assert service.engine.queries == {} and service.topics.names() == ["pay"]
    finally:
        case_functions.uninstall()


def test_passwords_do_not_reach_the_command_topic() -> None:
    log = Log()
    do(log.join(**{"ksql.ssl.keystore.password": "hush", "ksql.functions.f.x": "1"}), PAY, SPEND)
    assert b"hush" not in b"".join(value for _, value in log.records)
    assert log.services[0].engine.queries["CTAS_SPEND_1"].settings["ksql.functions.f.x"] == "1"


def flows_of(engine: Engine, service: str) -> dict[str, Definition]:
    """The queries of a catalogue as flows, numbered as if all had been made at once."""
    serials: dict[str, int] = {}
    give_serials(serials, engine)
    return dict(definitions(engine, service, serials))


def test_statements_become_flows() -> None:
    service = Log().join(**{"ksql.runtime": "spark"})
    do(service, PAY, SPEND, "CREATE STREAM copy AS SELECT * FROM pay;")
    do(service, "CREATE STREAM apart AS SELECT * FROM pay;", **{"ksql.runtime.shared": "false"})
    do(service, "CREATE STREAM here AS SELECT * FROM pay;", **{"ksql.runtime": "local"})

    def flows() -> dict[str, Any]:
        return {flow.name.rpartition("query_")[2]: flow for flow in flows_of(service.engine, "s1").values()}

    before = flows()
    assert {name: lane_of(flow) for name, flow in before.items()} == {
        "CTAS_SPEND_1": "shared/query-s1/1",
        "CSAS_COPY_2": "shared/query-s1/0",
        "CSAS_APART_3": f"query/{before['CSAS_APART_3'].name}/2",
    }
    do(service, "PAUSE CTAS_SPEND_1;")
    assert flows()["CTAS_SPEND_1"].wanted is Wanted.PAUSED and flows()["CSAS_COPY_2"] == before["CSAS_COPY_2"]
    do(service, "RESUME CTAS_SPEND_1;")
    after = flows()["CTAS_SPEND_1"]
    assert after == replace(before["CTAS_SPEND_1"], revision=3, attempt=3), "another try of the same"
    do(service, "TERMINATE CTAS_SPEND_1;")
    assert "CTAS_SPEND_1" not in flows()
    assert removed(after) == replace(after, wanted=Wanted.REMOVED, revision=4)


def test_function_in_python_goes_with_its_query(tmp_path: Path) -> None:
    source = "from moldau.sql import scalar\n@scalar\ndef thrice(n: int) -> int:\n    return 3 * n\n"
    (tmp_path / "more.py").write_text(source)
    load_folder(tmp_path)
    try:
        service = Log().join(**{"ksql.runtime": "spark"})
        do(service, PAY, "CREATE STREAM s AS SELECT card, THRICE(amount) AS n FROM pay;", SPEND)
        plans = {name.partition("_")[2]: plan for name, plan in service.engine.queries.items()}
    finally:
        REGISTRY.rows.pop("THRICE")
        FILES.pop("THRICE")
    assert plans["SPEND_2"].run.functions == () and plans["S_1"].run.functions == (("more.py", source),)
    with pytest.raises(SqlError, match="THRICE"):
        build(plans["S_1"])
    # What a worker makes of it runs where nobody knows the function.
    folder = tmp_path / "worker"
    folder.mkdir()
    try:
        topology = builder_of(str(written(plans["S_1"], "", folder))).build()
        packed = cloudpickle.dumps(topology.plan({}))
    finally:
        REGISTRY.rows.pop("THRICE")
    made = pickle.loads(packed)
    state, out = Shard("", "0_0"), list[Produced]()
    world = World(lambda spec: MemoryBytes(), out.append, lambda spec: None, lambda topic: 1)
    task = Task(made, made.members(0), state, world, execution({}))
    raw = Raw("pay", 0, 0, b"a", b'{"AMOUNT": 5}', 1, ())
    record = task.read(raw, -1)
    assert record is not None
    task.feed(raw, record)
    assert [record.value for record in out] == [b'{"N":15}']


def test_registry_of_a_query_is_pickled_by_its_address() -> None:
    made = RemoteRegistry("http://127.0.0.1:1")
    assert pickle.loads(cloudpickle.dumps(made)) == made and callable(made.latest)


def test_password_of_a_registry_is_the_workers_and_in_no_plan() -> None:
    log = Log()
    service = log.join(**{"ksql.runtime": "spark", "ksql.schema.registry.url": "http://me:secret@127.0.0.1:1/path"})
    do(service, PAY, SPEND)
    (plan,) = service.engine.queries.values()
    assert plan.run.registry == "http://127.0.0.1:1/path"
    assert "secret" not in json.dumps(encoded(plan))
    login = {"schema.registry.basic.auth.user.info": "worker:own", "schema.registry.timeout": 3}
    made = registry_of(plan, login)
    assert made is not None
    config = pickle.loads(pickle.dumps(made)).client.config()
    assert (config["url"], config["basic.auth.user.info"], config["timeout"]) == (made.url, "worker:own", 3)


def test_engine_is_unchanged_by_a_plan() -> None:
    engine = Engine()
    engine.execute_text(PAY)
    before = text_of(engine)
    from moldau.sql.parser import parse

    assert engine.plan(parse(SPEND)[0]) is not None and text_of(engine) == before
    with pytest.raises(SqlError):
        engine.plan(parse(PAY)[0])


def worker_of(log: Log) -> Engine:
    """Return what a worker knows, which has no settings and no folder of functions."""
    engine = Engine()
    for number, record in enumerate(log.records):
        replay(engine, number, Command.of(*record), {})
    return engine


def test_worker_follows_functions_views_unions_and_the_end(tmp_path: Path) -> None:
    text = "from moldau.sql import scalar\n@scalar\ndef worker_twice(n: int) -> int:\n    return n * 2\n"
    (tmp_path / "f.py").write_text(text, "utf-8")
    log = Log()
    service = log.join(**{"ksql.runtime": "spark", "ksql.extension.dir": str(tmp_path)})
    union = "SELECT card, worker_twice(amount) AS n FROM large UNION ALL SELECT card, worker_twice(1) AS n FROM pay"
    try:
        do(service, PAY, "CREATE FUNCTION worker_twice FROM 'f.py';")
        do(service, "CREATE VIEW large AS SELECT * FROM pay WHERE amount > 5;", f"CREATE STREAM both AS {union};")
        engine = worker_of(log)
        assert text_of(engine) == text_of(service.engine) and engine.position == service.engine.position
        flows = flows_of(engine, "default_")
        assert len(flows) == 2 == len({(lane_of(flow), flow.serial) for flow in flows.values()})
        assert all(plan.run.functions == (("f.py", text),) for plan in engine.queries.values())
        service.terminate([], lambda uses: None)
        assert not flows_of(worker_of(log), "default_") and not worker_of(log).catalogue.sources
        assert "WORKER_TWICE" not in REGISTRY.loaded  # nor is it there for whoever starts later
        assert text_of(log.join().engine) == text_of(worker_of(log))
    finally:
        unload("WORKER_TWICE")


def test_query_on_spark_is_replaced_as_another_version_of_its_flow() -> None:
    log = Log()
    one, two = (log.join(**{"ksql.runtime": "spark"}) for _ in range(2))
    do(one, PAY, SPEND, "PAUSE ctas_spend_1;", "RESUME ctas_spend_1;")
    first = flows_of(one.engine, "s_")
    do(two, SPEND.replace("CREATE", "CREATE OR REPLACE").replace("FROM pay", "FROM pay WHERE amount > 5"))
    assert text_of(one.engine) == text_of(two.engine) == text_of(worker_of(log))
    second = flows_of(two.engine, "s_")
    assert list(first) == list(second) and len(first) == 1, "its name, and so its state, stay"
    (old,), (new,) = first.values(), second.values()
    assert (old.serial, old.what["plan"].run.starts) == (new.serial, new.what["plan"].run.starts)
    assert old.version != new.version and old.revision < new.revision
    do(one, "PAUSE ctas_spend_1;")
    (paused,) = flows_of(one.engine, "s_").values()
    assert paused.version == new.version and paused.revision > new.revision
    more = SPEND.replace("CREATE", "CREATE OR REPLACE").replace("AS total", "AS total, MAX(amount) AS n")
    with pytest.raises(ServerError, match="cannot change the aggregate functions of a query on Spark"):
        do(one, more)
    with pytest.raises(ServerError, match="cannot change that"):
        do(one, SPEND.replace("CREATE", "CREATE OR REPLACE"), **{"ksql.runtime": "local"})


def test_all_servers_replace_a_local_query_under_its_id() -> None:
    log = Log()
    one, two = log.join(), log.join()
    more = SPEND.replace("CREATE", "CREATE OR REPLACE").replace("AS total", "AS total, MAX(amount) AS n")
    do(one, PAY, SPEND, "PAUSE ctas_spend_1;", more)
    assert list(one.engine.queries) == ["CTAS_SPEND_1"] and not one.engine.paused
    assert [name for name, _ in one.engine.catalogue.sources["SPEND"].schema.value][-1] == "N"
    assert text_of(one.engine) == text_of(two.engine) == text_of(worker_of(log))
    with pytest.raises(ServerError, match="runs with ksql"):
        do(one, more, **{"ksql.runtime": "spark"})

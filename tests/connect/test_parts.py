"""Parts of a worker that need no cluster: secrets, topics to create, made-up records, lines, loggers, decisions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.connect import changes, plugins, secrets
from moldau.connect.config_topic import CODEC, ConfigState, Restart
from moldau.connect.connector import SourceContext
from moldau.connect.connectors.datagen import Datagen, shapes
from moldau.connect.connectors.file_stream import LineReader, cut
from moldau.connect.creation import Creation
from moldau.connect.data import Struct
from moldau.connect.errors import ConfigError
from moldau.connect.group import Unit, shared_out, unit_key, unit_of
from moldau.connect.loggers import Loggers
from moldau.connect.status_topic import Status, StatusState
from moldau.connect.worker import is_restarted
from moldau.http import HttpError

PROVIDER = "org.apache.kafka.common.config.provider."


def test_references_are_resolved_by_the_providers_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("user=ana\n")
    (tmp_path / "key").write_text("s3cret")
    monkeypatch.setenv("WHO", "bert")
    worker = {"config.providers": "f, d,e", "config.providers.f.class": f"{PROVIDER}FileConfigProvider"}
    worker |= {
        f"config.providers.{a}.class": f"{PROVIDER}{c}"
        for a, c in (("d", "DirectoryConfigProvider"), ("e", "EnvVarConfigProvider"))
    }
    known = secrets.providers(worker)
    config = {"a": f"${{f:{tmp_path}/file:user}}-${{d:{tmp_path}:key}}", "b": "${e:WHO}", "c": "${x:y}", "d": None}
    assert secrets.resolve(config, known) == {"a": "ana-s3cret", "b": "bert", "c": "${x:y}"}
    for text in ("${f:/nowhere:user}", f"${{f:{tmp_path}/file:none}}", f"${{d:{tmp_path}:../key}}", "${e:NOBODY_HAS}"):
        with pytest.raises(ConfigError):
            secrets.resolve({"a": text}, known)
    with pytest.raises(ConfigError, match="FileConfigProvider"):
        secrets.providers({"config.providers": "v", "config.providers.v.class": "Vault"})


def test_topics_are_created_by_the_first_group_that_takes_them() -> None:
    assert Creation.of({"topic": "t"}) is None
    config = {
        "topic.creation.groups": "logs,none",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.logs.include": "log-.*, audit",
        "topic.creation.logs.exclude": "log-x",
        "topic.creation.logs.partitions": "7",
        "topic.creation.logs.cleanup.policy": "compact",
        "topic.creation.none.include": "nothing",
    }
    creation = Creation.of(config)
    assert creation is not None
    made = {name: creation.new_topic(name) for name in ("log-a", "log-x", "audit", "other")}
    assert {name: one.partitions for name, one in made.items()} == {"log-a": 7, "log-x": 2, "audit": 7, "other": 2}
    assert made["log-a"].configs == {"cleanup.policy": "compact"} and made["other"].configs == {}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"default.partitions": "1"}, 'Missing required configuration "topic.creation.default.replication.factor"'),
        ({"enable": "true"}, 'Missing required configuration "topic.creation.default.replication.factor"'),
        ({"default.replication.factor": "0"}, "Invalid value 0 for configuration replication.factor: Replication fa"),
        ({"default.replication.factor": "x"}, "Invalid value x for configuration topic.creation.default.replication."),
        ({"logs.partitions": "0"}, "Invalid value 0 for configuration partitions: Number of partitions must be positi"),
        ({"logs.include": "["}, r"Invalid value \[\[\] for configuration include: Syntax error in regular expression"),
        ({"logs.partitions": "many"}, "Not a number of type INT"),
    ],
)
def test_wrong_groups_of_topics_are_refused_in_connects_words(given: dict[str, str], error: str) -> None:
    whole = {"groups": "logs", "default.partitions": "1", "default.replication.factor": "1"}
    config = given if error.startswith("Missing") else {**whole, **given}
    with pytest.raises(ConfigError, match=error):
        Creation.of({f"topic.creation.{name}": text for name, text in config.items()})


def task(config: dict[str, Any], offset: Any = None) -> Any:
    texts = {key: str(value) for key, value in {"name": "x", "kafka.topic": "t", "max.interval": 0, **config}.items()}
    [one] = Datagen().task_configs(texts, 1)
    return Datagen().open(SourceContext(one, lambda _: offset, lambda _: True))


@pytest.mark.parametrize("name", sorted(shapes()))
def test_every_quickstart_makes_records_of_its_schema(name: str) -> None:
    records = task({"quickstart": name, "iterations": 20}).poll()
    assert len(records) == 20
    for record in records:
        assert isinstance(record.value, Struct)
        record.value.validate()
        assert record.key == record.value.values[0]


def test_made_up_records_depend_on_seed_and_number_alone() -> None:
    config = {"quickstart": "users", "iterations": 50, "random.seed": 7}
    whole = [record.value for record in task(config).poll()]
    rest = [record.value for record in task(config, {"current_iteration": 30}).poll()]
    assert rest == whole[30:]
    assert [record.value for record in task({**config, "random.seed": 8}).poll()] != whole
    assert task(config, {"current_iteration": 50}).poll() == ()


def test_an_avro_schema_makes_records() -> None:
    schema = """{"type": "record", "name": "R", "namespace": "n", "fields": [
        {"name": "id", "type": {"type": "long", "arg.properties": {"iteration": {"start": 5}}}},
        {"name": "kind", "type": {"type": "string", "arg.properties": {"options": ["a", "b"]}}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "inner", "type": ["null", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}]}
    ]}"""
    records = task({"schema.string": schema, "schema.keyfield": "id", "iterations": 3}).poll()
    assert [record.key for record in records] == [5, 6, 7]
    assert {record.value.get("kind") for record in records} <= {"a", "b"}
    assert records[0].value_schema.name == "n.R"
    for wrong in (
        {},
        {"quickstart": "users", "schema.string": schema},
        {"schema.string": '"int"'},
        {"schema.string": "{"},
    ):
        with pytest.raises(ConfigError):
            task(wrong)


@given(st.lists(st.text("ab\r", max_size=3)), st.sampled_from(["\n", "\r\n"]))
def test_lines_end_as_java_ends_them(words: list[str], end: str) -> None:
    """A line ends in \\n, \\r\\n or \\r, and what comes after the last end is not a line yet."""
    text = "".join(word + end for word in words) + "rest"
    data, start, found = text.encode(), 0, []
    while (lines := cut(data[start:], 2))[0]:
        found += [line.decode() for line, _ in lines[0]]
        assert lines[1] == sum(length for _, length in lines[0])
        start += lines[1]
    assert found == text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    assert cut(b"a\r", 2) == ([], 0)


def test_a_source_of_lines_goes_on_at_its_position_and_unpacks(tmp_path: Path) -> None:
    import gzip

    plain, packed = tmp_path / "a", tmp_path / "a.gz"
    plain.write_bytes("ä\nb\nc".encode())
    packed.write_bytes(gzip.compress("ä\nb\nc".encode()))
    for file in (plain, packed):
        config = {"file": str(file), "topic": "t", "batch.size": "1"}
        context = SourceContext(config, lambda _: {"position": 3}, lambda _: False)
        [record] = LineReader(context).poll()
        assert (record.value, record.source_offset) == ("b", {"position": 5})


def test_loggers_have_connects_levels() -> None:
    import logging

    loggers, name = Loggers(), "moldau.connect.test_of_levels"
    logging.getLogger(f"{name}.below")
    assert loggers.set(name, "debug") == [name, f"{name}.below"]
    shown = loggers.shown(name)
    assert shown["level"] == "DEBUG" and shown["last_modified"] > 0
    assert loggers.listed()[f"{name}.below"]["level"] == "DEBUG"
    for call, status in ((lambda: loggers.shown("nobody"), 404), (lambda: loggers.set(name, "HIGH"), 404)):
        with pytest.raises(HttpError) as caught:
            call()
        assert caught.value.status == status


@pytest.mark.parametrize(
    ("include", "only_failed", "restarted"),
    [(False, False, {None}), (True, False, {None, 0, 1}), (True, True, {1}), (False, True, set())],
)
def test_a_restart_means_what_it_names(include: bool, only_failed: bool, restarted: set[int | None]) -> None:
    states = {None: "RUNNING", 0: "RUNNING", 1: "FAILED"}
    what = Restart("x", include, only_failed)
    assert {task for task, state in states.items() if is_restarted(what, ("x", task), state)} == restarted
    assert not any(is_restarted(what, ("y", task), "FAILED") for task in states)


def test_tasks_are_shared_out_evenly_whoever_has_the_connectors() -> None:
    """A worker comes to two that have all: each gets a third of the tasks, and of the connectors."""
    units: list[Unit] = [(f"x{n:02}", task) for n in range(30) for task in (None, 0)]
    keys = [unit_key(unit) for unit in units]
    owned: dict[str, list[str]] = {"a": keys[:40], "b": keys[40:], "c": []}
    for _ in range(2):  # in the first round they only let go
        owned = {worker: list(some) for worker, some in shared_out(units, owned).items()}
    tasks = {worker: sum(unit_of(one)[1] is not None for one in some) for worker, some in owned.items()}
    assert tasks == {"a": 10, "b": 10, "c": 10}
    assert sorted(one for some in owned.values() for one in some) == sorted(keys)
    assert {len(some) for some in owned.values()} == {20}


def test_a_restart_of_what_nobody_has_run_is_refused() -> None:
    state, said = ConfigState(), StatusState()
    rows, _ = changes.create(state, "x", {"connector.class": "FileStreamSink"}, None)
    for row in rows:
        state.replay(row)
    with pytest.raises(HttpError, match="Status for connector x not found"):
        changes.restart(state, said, Restart("x", True, False))
    said.statuses["x", None] = said.statuses["x", 0] = Status("FAILED", "w", 1, None, "trace")
    rows, answer = changes.restart(state, said, Restart("x", True, True))
    assert answer["connector"] == {"state": "RESTARTING", "worker_id": "w", "version": None}
    assert [(task["state"], task["trace"]) for task in answer["tasks"]] == [("RESTARTING", "trace")]
    assert [CODEC.encode(row)[0] for row in rows] == [b"restart-connector-x"]


def test_plugins_go_by_their_class_and_by_shorter_names() -> None:
    for plugin in plugins.connectors():
        assert all(plugins.find(name) == plugin for name in plugin.names)
        connector = plugin.load()
        assert connector.kind == plugin.kind and connector.task_class
    assert plugins.find("Nope") is None
    kinds = {row["type"] for row in plugins.listed(connectors_only=False)}
    assert kinds == {"sink", "source", "transformation", "predicate", "converter", "header_converter"}


def test_dice_are_not_shared() -> None:
    before = random.getstate()
    task({"quickstart": "orders", "iterations": 5}).poll()
    assert random.getstate() == before

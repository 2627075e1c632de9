"""`moldau streams`: an application of a file is shown, and begun anew; mistakes are told in a sentence."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.admin import groups, topics
from moldau.cli.output import time_of
from moldau.client import CONTROLLER, Client, Record, build, check, produce
from moldau.client import messages as m
from moldau.spark.progress import commit_offsets
from moldau.spark.runner.reports import SILENT, Fallback, Report, to_text
from moldau.spark.runner.status import State

from .running import Moldau

FILE = """
from moldau.streams import StreamsBuilder, String

builder = StreamsBuilder("shown")
builder.stream("in", key=String(), value=String()).to("out")
builder.run()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "app.py"
    path.write_text(FILE)
    return str(path)


def test_a_file_is_described_and_not_run(moldau: Moldau, file: str) -> None:
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: [in])" in moldau("streams", "describe", file)


def test_a_file_that_is_missing_is_told(moldau: Moldau, tmp_path: Path) -> None:
    done = moldau.run("streams", "describe", str(tmp_path / "none.py"))
    assert done.code != 0
    assert "There is no file" in done.err


def test_topics_that_are_missing_are_created_and_a_wrong_setting_is_told(moldau: Moldau, tmp_path: Path) -> None:
    names = [f"{name}-{uuid.uuid4().hex[:8]}" for name in ("read", "written")]
    path = tmp_path / "app.py"
    path.write_text(FILE.replace('"in"', repr(names[0])).replace('"out"', repr(names[1])))
    done = moldau.run("streams", "run", str(path), "--create-topics", "-X", "processing.guarantee=never")
    assert done.code != 0
    assert "it must be exactly_once_v2 or at_least_once" in done.err
    assert set(names) <= {row["name"] for row in json.loads(moldau("topic", "list", "-o", "json"))}


def test_a_file_without_a_builder_is_refused(moldau: Moldau, tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("answer = 42\n")
    done = moldau.run("streams", "describe", str(path))
    assert done.code != 0
    assert "creates 0 builders" in done.err


def test_a_reset_takes_state_and_changelogs_and_leaves_the_rest(moldau: Moldau, tmp_path: Path) -> None:
    home = tmp_path / "app"
    (home / "checkpoint").mkdir(parents=True)
    (home / "moldau-streams.json").write_text("{}")
    client = Client({"bootstrap.servers": moldau.servers})
    names = ["app-counts-changelog", "app-other", "application-counts-changelog"]
    new = [m.CreateTopicsRequest_CreatableTopic(name, 1, 1) for name in names]
    check(client.send(m.CreateTopicsRequest(new, timeout_ms=10_000), to=CONTROLLER))
    moldau("streams", "reset", "app", "--state-dir", f"file://{tmp_path}", "--yes")
    assert not home.exists()
    left = client.refresh(None).topics.keys() & set(names)
    assert left == {"app-other", "application-counts-changelog"}
    client.close()


def test_a_reset_says_that_state_elsewhere_is_to_be_removed_there(moldau: Moldau) -> None:
    done = moldau.run("streams", "reset", "app", "--state-dir", "hdfs://names/state", "--yes")
    assert "remove hdfs://names/state/app" in done.err + done.out


def test_applications_are_listed(moldau: Moldau, client: Client) -> None:
    topic = moldau.topic()
    moldau.write(topic, "a", "b")
    groups.commit(client, "lister", {(topic, 0): 1})
    topics.create(client, [topics.NewTopic("lister-counts-changelog", 1)])
    found = {row["name"]: row for row in moldau.json("streams", "list")}
    expected = {"name": "lister", "state": "Empty", "since_ms": None, "detail": None, "reads": [topic], "writes": []}
    assert found["lister"] == {**expected, "lag": 1, "fallbacks": [], "worker": None}
    assert "lister" in moldau("streams", "list")


def test_what_an_application_does_is_told_by_its_report(moldau: Moldau, client: Client) -> None:
    topic, name, now = moldau.topic(), f"reporter-{uuid.uuid4().hex[:8]}", time.time_ns() // 1_000_000
    slow = (Fallback(2, 1234, "an aggregate is None"),)
    running = Report(State.RUNNING, now - 90_000, now, now - 60_000, None, slow)
    for report, state, detail in (
        (running, "waiting", None),
        (replace(running, batch_at_ms=now), "running", None),
        (replace(running, state=State.FAILED, error="no weights"), "failed", "no weights"),
        (replace(running, at_ms=now - 60_000), "stopped", SILENT),
        (replace(running, state=State.STOPPED), "stopped", None),
    ):
        commit_offsets(client, name, {(topic, 0): 0}, metadata=to_text(report))
        found = moldau.json("streams", "describe", name)
        assert (found["state"], found["detail"]) == (state, detail)
    text = moldau("streams", "describe", name)
    assert "1,234 batches of sub-topology 2 (an aggregate is None)" in text
    assert str(time_of(running.since_ms)) in text
    assert "stopped" in moldau("streams", "list")


def test_an_application_that_is_not_there_is_refused(moldau: Moldau) -> None:
    done = moldau.run("streams", "describe", "nobody")
    assert done.code != 0
    assert "There is no application nobody;" in done.err


STORES = """
from moldau.streams import Long, StreamsBuilder, String, TimeWindows

builder = StreamsBuilder("asked-%s", {"default.key.serde": "string", "default.value.serde": "string"})
clicks = builder.stream("clicks").group_by_key()
clicks.count(store="counts")
clicks.windowed_by(TimeWindows.of("1 minute", grace="1 day")).count(store="minutes")
"""


@pytest.fixture
def asked(moldau: Moldau, tmp_path: Path) -> tuple[str, str]:
    """A file, and its application's id; what it counts is in its changelogs."""
    identity = uuid.uuid4().hex[:8]
    path = tmp_path / "stores.py"
    path.write_text(STORES % identity)
    client = Client({"bootstrap.servers": moldau.servers})
    two = (2).to_bytes(8, "big")
    rows = {"counts": [Record(timestamp=5, key=b"ann", value=two), Record(timestamp=6, key=b"bob", value=two)]}
    rows["minutes"] = [Record(timestamp=60_001, key=b"ann" + (60_000).to_bytes(8, "big") + bytes(4), value=two)]
    for store, records in rows.items():
        topic = f"asked-{identity}-{store}-changelog"
        new = [m.CreateTopicsRequest_CreatableTopic(topic, 1, 1)]
        check(client.send(m.CreateTopicsRequest(new, timeout_ms=10_000), to=CONTROLLER))
        produce(client, topic, 0, build(records))
    client.close()
    return str(path), f"asked-{identity}"


def test_the_stores_of_a_file_are_asked(moldau: Moldau, asked: tuple[str, str]) -> None:
    file, _ = asked
    found = json.loads(moldau("streams", "query", file, "counts", "ann", "-o", "json"))
    assert found == [{"key": "ann", "value": 2, "timestamp": 5}]
    assert len(json.loads(moldau("streams", "query", file, "counts", "-o", "json"))) == 2
    found = json.loads(moldau("streams", "query", file, "minutes", "ann", "--start", "1", "-o", "json"))
    assert [row["window_start"] for row in found] == [60_000]
    found = json.loads(moldau("streams", "query", file, "--sql", "select sum(value) as n from counts", "-o", "json"))
    assert found == [{"n": 4}]
    assert len(json.loads(moldau("streams", "query", file, "counts", "--at", "0:1", "-o", "json"))) == 1


def test_a_store_is_asked_by_the_id_of_its_application(moldau: Moldau, asked: tuple[str, str]) -> None:
    _, identity = asked
    long = ("--value-format", "long", "-o", "json")
    found = json.loads(moldau("streams", "query", identity, "counts", "--prefix", "b", *long))
    assert found == [{"key": "bob", "value": 2, "timestamp": 6}]
    kind = ("--kind", "window", "--window-size", "60000")
    found = json.loads(moldau("streams", "query", identity, "minutes", "ann", *kind, *long))
    assert [row["window_end"] for row in found] == [120_000]
    assert json.loads(moldau("streams", "query", identity, "counts", "nobody", *long)) == []


def test_what_cannot_be_asked_is_told(moldau: Moldau, asked: tuple[str, str]) -> None:
    file, identity = asked
    assert "Name a store" in moldau.run("streams", "query", file).err
    assert "has no store none" in moldau.run("streams", "query", file, "none").err
    assert "needs a Python file" in moldau.run("streams", "query", identity, "--sql", "select 1").err
    assert "does not answer" in moldau.run("streams", "query", "http://127.0.0.1:1", "counts").err
    assert "is not known" in moldau.run("streams", "query", identity, "counts", "--value-format", "none").err

"""Taps and targets of Singer, as child processes."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.singer_child import Child
from moldau.connect.connectors.singer_messages import Row, State, connect_schema, fitted, json_schema, read
from moldau.connect.connectors.singer_source import SINGER, chosen
from moldau.connect.connectors.singer_target import SingerSink
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.shapes import plain
from moldau.testing import eventually

PATIENCE_S = 120
TAP = """
    import argparse, json, sys
    parser = argparse.ArgumentParser()
    for name in ("--config", "--state", "--catalog"):
        parser.add_argument(name, type=lambda path: json.load(open(path)), default={})
    parser.add_argument("--discover", action="store_true")
    given = parser.parse_args()
    write = lambda **message: print(json.dumps(message), flush=True)
    if given.discover:
        print(json.dumps({"streams": [{"tap_stream_id": name, "schema": {}} for name in ("rows", "other")]}, indent=1))
        sys.exit()
    properties = {"id": {"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}
    write(type="SCHEMA", stream="rows", schema={"type": "object", "properties": properties}, key_properties=["id"])
    first = given.state.get("next", 0)
    for n in range(first, given.config["count"]):
        write(type="RECORD", stream="rows", record={"id": n, "at": "2026-01-02T03:04:05Z"})
        if n % 2:
            write(type="STATE", value={"next": n + 1})
        if n == given.config.get("dies_at"):
            print('{"type": "RECORD", "stream": "ro', end="", flush=True)
            print("the database is gone", file=sys.stderr, flush=True)
            sys.exit(3)
"""
TARGET = """
    import json, sys
    config = json.load(open(sys.argv[2]))
    rows = []
    for line in sys.stdin:
        message = json.loads(line)
        print(line, end="")
        if message["type"] == "RECORD":
            if message["record"].get("id") == config.get("dies_at"):
                sys.exit("the disk is full")
            rows.append(message["record"])
    open(config["path"], "a").writelines(json.dumps(row) + "\\n" for row in rows)
"""


def program(folder: Path, name: str, text: str) -> str:
    place = folder / name
    place.write_text(textwrap.dedent(text))
    return f"{sys.executable} {place}"


def opened(command: str, state: Any = None, **settings: Any) -> Any:
    config = {name.replace("_", "."): str(one) for name, one in settings.items()}
    [task] = SINGER.task_configs({"tap.command": command, "tap.interval.ms": "3600000", **config}, 3)
    stored = None if state is None else {"state": state}
    return SINGER.open(SourceContext(task, lambda _: stored, lambda _: False))


def polled(task: Any, count: int) -> list[Record]:
    """So many records, and no more."""
    found: list[Record] = []

    def enough() -> bool:
        found.extend(task.poll())
        return len(found) >= count

    eventually(enough, PATIENCE_S, f"{count} records")
    assert len(found) == count
    return found


def ids(records: list[Record]) -> list[int]:
    return [one.value.get("id") for one in records]


# Messages.


def test_schemas_become_those_of_connect_and_come_back() -> None:
    document = {
        "type": "object",
        "properties": {
            "a": {"type": ["null", "integer"]},
            "b": {"anyOf": [{"type": "null"}, {"type": "number"}]},
            "c": {"type": "array", "items": {"type": ["string", "null"]}},
            "d": {"type": "object", "properties": {"e": {"type": "boolean"}}},
            "f": {"type": ["string", "integer"]},
            "g": {"type": "object"},
            "h": {},
        },
    }
    schema = connect_schema(document)
    kinds = {one.name: one.schema.type.value for one in schema.fields}
    simple = {"a": "int64", "b": "float64", "c": "array", "d": "struct"}
    assert kinds == {**simple, "f": "string", "g": "string", "h": "string"}
    assert connect_schema(json_schema(schema)) == schema
    row = {"a": 3.0, "b": 1, "c": ["x", 2], "d": {"e": True}, "f": 7, "g": {"k": [1]}}
    made = plain(schema, fitted(schema, row, "row"))
    assert made == {**row, "a": 3, "c": ["x", "2"], "f": "7", "g": '{"k": [1]}', "h": None}
    for bad in ({"a": "x"}, {"a": 2**63}, {"a": True}, {"b": "1"}, {"d": []}, {"c": "x"}):
        with pytest.raises(DataError):
            fitted(schema, bad, "row")


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[1]",
        "{}",
        '{"type":"BATCH"}',
        '{"type":"RECORD","stream":"s"}',
        '{"type":"SCHEMA","stream":"s"}',
        '{"type":"SCHEMA","stream":"s","schema":{"type":"string"}}',
        "\xff",
    ],
)
def test_what_is_not_a_message_is_refused(line: str) -> None:
    with pytest.raises(DataError):
        read(line.encode("latin-1"))


def test_messages_are_read() -> None:
    assert read(b'{"type":"RECORD","stream":"s","record":{"a":1},"time_extracted":"x"}') == Row("s", {"a": 1})
    assert read(b'{"type":"STATE","value":null}') == State(None)
    assert read(b'{"type":"ACTIVATE_VERSION","stream":"s","version":1}') is None


def test_streams_are_chosen_in_both_ways_that_taps_know() -> None:
    rows = [{"breadcrumb": [], "metadata": {"inclusion": "available"}}, {"breadcrumb": ["properties", "a"]}]
    catalog = {"streams": [{"tap_stream_id": "a", "schema": {"type": "object"}, "metadata": rows}, {"stream": "b"}]}
    made = chosen(catalog, ["a"])["streams"]
    assert made[0]["metadata"] == [
        {"breadcrumb": [], "metadata": {"inclusion": "available", "selected": True}},
        rows[1],
    ]
    assert [one["schema"]["selected"] for one in made] == [True, False]
    assert [one["schema"]["selected"] for one in chosen(catalog, ["*"])["streams"]] == [True, True]
    with pytest.raises(ConnectError, match="no stream c; it has a, b"):
        chosen(catalog, ["c"])
    with pytest.raises(ConnectError, match="no streams"):
        chosen([], ["c"])


# Taps.


def test_a_tap_goes_on_from_its_state(tmp_path: Path) -> None:
    tap = program(tmp_path, "tap.py", TAP)
    task = opened(tap, tap_config='{"count": 5}', topic_name_format="t-${stream}")
    found = polled(task, 5)
    assert ids(found) == [0, 1, 2, 3, 4] and {one.topic for one in found} == {"t-rows"}
    assert found[0].key.get("id") == 0 and found[0].value.get("at") == "2026-01-02T03:04:05Z"
    ends = [(one.source_offset or {}).get("state", {}).get("next") for one in found]
    assert ends == [2, 2, 4, 4, None]  # after the last STATE there is none to keep
    task.close()
    again = opened(tap, {"next": 4}, tap_config='{"count": 6}')
    assert ids(polled(again, 2)) == [4, 5]
    again.close()


def test_what_a_tap_wrote_after_its_last_state_is_dropped_when_it_dies(tmp_path: Path) -> None:
    task = opened(program(tmp_path, "tap.py", TAP), tap_config='{"count": 9, "dies_at": 4}')
    found: list[Record] = []

    def ends() -> bool:
        try:
            found.extend(task.poll())
        except ConnectError as error:
            assert "ended with code 3: the database is gone" in str(error)
            return True
        return False

    eventually(ends, PATIENCE_S, "the failure")
    assert ids(found) == [0, 1, 2, 3]
    task.close()


def test_records_are_passed_on_without_a_state_if_there_are_too_many(tmp_path: Path) -> None:
    task = opened(program(tmp_path, "tap.py", TAP), tap_config='{"count": 1}', tap_buffer_bytes=1)
    [one] = polled(task, 1)
    assert one.source_offset is None
    task.close()


def test_streams_are_asked_for_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    tap = program(tmp_path, "tap.py", TAP)
    task = opened(tap, tap_config='{"count": 2}', tap_streams="rows")
    assert ids(polled(task, 2)) == [0, 1]
    task.close()
    task = opened(tap, tap_config='{"count": 2}', tap_streams="rows,none")
    with pytest.raises(ConnectError, match="no stream none; it has other, rows"):
        task.poll()
    task.close()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('print("x" * 3000)', "a line of more than 1000 bytes"),
        ('print(json.dumps({"type": "RECORD", "stream": "s", "record": {}}))', "of s before its SCHEMA"),
        ('print("Hello")', "A line is not JSON: Hello"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9"),
    ],
)
def test_a_tap_that_does_not_speak_singer_fails_the_task(lines: str, said: str, tmp_path: Path) -> None:
    task = opened(program(tmp_path, "tap.py", f"import json\n{lines}\n"), tap_line_max_bytes=1000)

    def fails() -> bool:
        try:
            return bool(task.poll())
        except ConnectError as error:
            assert said in str(error)
            return True

    eventually(fails, PATIENCE_S, "the failure")
    task.close()


def test_a_tap_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    text = f"""
    import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open({str(tmp_path / "pid")!r}, "w").write(str(child.pid) + ".")
    child.wait()
    """
    task = opened(program(tmp_path, "tap.py", text))
    pid = tmp_path / "pid"
    eventually(lambda: not task.poll() and pid.exists() and pid.read_text().endswith("."), PATIENCE_S, "its start")
    task.close()
    eventually(lambda: gone(int(pid.read_text()[:-1])), PATIENCE_S, "the end of what the tap started")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_settings_that_do_not_go_together_are_refused() -> None:
    bad = (
        {"tap.config": "{"},
        {"tap.config": "[]"},
        {"tap.streams": "a", "tap.catalog.file": "b"},
        {"tap.command": "'"},
    )
    for config in bad:
        with pytest.raises(ConfigError):
            SINGER.task_configs({"tap.command": "tap", **config}, 1)
    with pytest.raises(ConnectError, match="No such file"):
        opened("/nowhere/tap").poll()
    SINGER.check_offset({}, {"tap": "singer"}, {"state": {}})
    for partition, offset in (({"tap": "x"}, None), ({"tap": "singer"}, {"position": 1})):
        with pytest.raises(ConnectError):
            SINGER.check_offset({}, partition, offset)


# Targets.


def writing(command: str, **config: Any) -> Any:
    given = {"target.command": command, "target.config": json.dumps(config), "target.key.fields": "id"}
    [task] = SingerSink().task_configs(given, 1)
    refused: list[int | None] = []
    context = SinkContext(task, lambda record, _: refused.append(record.offset), lambda _: False)
    return SingerSink().open(context), refused


def record(offset: int, value: Any, schema: Any = None) -> Record:
    return Record("t", 0, None, None, schema, value, 0, offset=offset)


def test_a_target_has_everything_before_offsets_are_committed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    task, refused = writing(program(tmp_path, "target.py", TARGET), path=str(out))
    task.put([record(0, {"id": 1, "name": "ä"}), record(1, "text", STRING), record(2, {"name": "no id"})])
    task.put([record(3, {"id": 2, "more": [1]})])
    assert not out.exists()
    assert task.flush({("t", 0): 4}) == {("t", 0): 4} and refused == [1, 2]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0] == {"id": 1, "name": "ä"} and rows[-1] == {"id": 2, "name": None, "more": [1]}
    assert task.flush({("t", 0): 4}) == {("t", 0): 4}  # nothing new, nothing to start
    task.put([record(4, {"id": 3})])  # a new run is told the schema again
    task.flush({("t", 0): 5})
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()][-2:] == [2, 3]
    task.close()


def test_a_target_that_dies_fails_the_task(tmp_path: Path) -> None:
    task, _ = writing(program(tmp_path, "target.py", TARGET), path=str(tmp_path / "out"), dies_at=2)
    with pytest.raises(ConnectError, match=r"ended with code 1: the disk is full"):
        task.put([record(n, {"id": n}) for n in range(5)])
        task.flush({("t", 0): 5})
    task.close()


def test_a_target_that_reads_nothing_is_given_up() -> None:
    child = Child([sys.executable, "-c", "import time; time.sleep(600)"], 1000, wants_input=True)
    with pytest.raises(ConnectError, match="has read nothing"):
        child.write(b"x" * 10_000_000, 0.5)
    child.kill()

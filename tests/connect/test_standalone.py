"""A standalone worker: connectors of files, offsets in a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from moldau.connect.files import read_connector
from moldau.connect.standalone import FILE, FileOffsets
from moldau.settings import SettingError
from moldau.testing import Broker
from tests.connect.running import STRING, eventually
from tests.services import STOP_S, unique


def test_offsets_outlive_the_process_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    store = FileOffsets(path)
    store.put([store.encode("a", {"file": "ä"}, {"position": 3}), store.encode("b", {"x": 1}, {"y": 2})], print)
    store.write([store.encode("b", {"x": 1}, None)], 0)
    again = FileOffsets(path)
    assert again.offset("a", {"file": "ä"}) == {"position": 3}
    assert again.of("b") == []


def test_a_file_of_javas_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").write_bytes(b"\xac\xed\x00\x05sr")
    with pytest.raises(SettingError, match="only Java can read it"):
        FileOffsets(tmp_path / "offsets")


def test_configs_are_read_from_properties_and_json(tmp_path: Path) -> None:
    config = {"name": "x", "connector.class": "FileStreamSink", "topics": "t"}
    (tmp_path / "a").write_text("name=x\nconnector.class=FileStreamSink\ntopics=t\n")
    (tmp_path / "b").write_text('{"name": "x", "config": {"connector.class": "FileStreamSink", "topics": "t"}}')
    (tmp_path / "c").write_text('{"name": "x", "connector.class": "FileStreamSink", "topics": "t"}')
    assert [read_connector(str(tmp_path / name)) for name in "abc"] == [config] * 3
    (tmp_path / "d").write_text("{")
    for name in "de":
        with pytest.raises(SettingError):
            read_connector(str(tmp_path / name))


def test_a_standalone_worker_goes_on_where_it_stood(connect_broker: Broker, tmp_path: Path) -> None:
    into, out, topic = tmp_path / "in", tmp_path / "out", unique("alone")
    into.write_text("1\n2\n")
    worker = {"bootstrap.servers": connect_broker.bootstrap_servers, FILE: str(tmp_path / "offsets")}
    worker |= {"key.converter": STRING, "value.converter": STRING, "listeners": "http://127.0.0.1:0"}
    files = {
        "worker": worker,
        "source": {"name": "source", "connector.class": "FileStreamSource", "file": str(into), "topic": topic},
        "sink": {"name": "sink", "connector.class": "FileStreamSink", "file": str(out), "topics": topic},
    }
    for name, settings in files.items():
        (tmp_path / name).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "moldau", "connect-standalone", *(str(tmp_path / name) for name in files)]
    for expected in ("1\n2\n", "1\n2\n3\n"):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().removeprefix("ready ").strip()
            eventually(lambda: out.exists() and out.read_text(), expected)
            assert httpx.get(f"{url}/connectors", trust_env=False).json() == ["source", "sink"]
        finally:
            process.terminate()
            process.wait(STOP_S)
        with into.open("a") as file:
            file.write("3\n")

"""`moldau streams`: an application of a file is shown, and begun anew; mistakes are told in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client import CONTROLLER, Client, check
from moldau.client import messages as m

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


def test_a_file_without_a_builder_is_refused(moldau: Moldau, tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("answer = 42\n")
    done = moldau.run("streams", "describe", str(path))
    assert done.code != 0
    assert "makes 0 builders" in done.err


def test_a_reset_takes_state_and_changelogs_and_leaves_the_rest(moldau: Moldau, tmp_path: Path) -> None:
    home = tmp_path / "app"
    (home / "checkpoint").mkdir(parents=True)
    (home / "moldau-streams.json").write_text("{}")
    client = Client({"bootstrap.servers": moldau.servers})
    names = ["app-counts-changelog", "app-other", "application-counts-changelog"]
    new = [m.CreateTopicsRequest_CreatableTopic(name, 1, 1) for name in names]
    check(client.send(m.CreateTopicsRequest(new, timeout_ms=10_000), to=CONTROLLER))
    moldau("streams", "reset", "app", "--state-dir", str(tmp_path), "--yes")
    assert not home.exists()
    left = client.refresh(None).topics.keys() & set(names)
    assert left == {"app-other", "application-counts-changelog"}
    client.close()

"""docs/streams-tutorial.md is executed as it stands: the application runs on Spark, and its store is asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.admin import offsets
from moldau.streams import StreamsBuilder
from tests.spark.conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streams-tutorial.md").read_text()
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "127.0.0.1:7070"
WAIT_S = 100.0


class Reader:
    """Somebody who types what the page says, in a folder with app.py."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self.servers, self.address = folder, servers, ADDRESS
        self.environment = {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": servers, "XDG_CONFIG_HOME": str(folder)}

    def python(self, block: str) -> None:
        exec(
            compile(block, "docs/streams-tutorial.md", "exec"), {"bootstrap_servers": self.servers, "__name__": "page"}
        )

    def sh(self, block: str) -> str:
        script = f'moldau() {{ {sys.executable} -m moldau "$@"; }}\n{block.replace(ADDRESS, self.address)}'
        command = ["bash", "-e", "-o", "pipefail", "-c", script.replace("timeout_ms=20000", "timeout_ms=25000")]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=self.environment, cwd=self.folder
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_the_tutorial_runs(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, topics), (_, app), (_, test), (_, lines), (_, curls), (_, queries), (_, asking) = BLOCKS
    reader = Reader(tmp_path, cluster.servers)
    (tmp_path / "app.py").write_text(app)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    reader.sh(topics)
    reader.python(test)
    builder = sys.modules["app"].builder
    assert isinstance(builder, StreamsBuilder)
    settings = {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path), "application.server": "127.0.0.1:0"}
    with builder.start(settings, spark=spark) as running:
        running.wait_for("RUNNING", WAIT_S)
        assert running.server is not None
        reader.address = running.server.removeprefix("http://")
        reader.sh(lines)
        places = [("lines", number) for number in range(2)]
        written = offsets.one_time(cluster.client, places, offsets.LATEST, committed=True)
        counts = running.store("counts", at_least=written, timeout=WAIT_S)  # what came of what was written
        assert counts.get("sleeps").value == 1
        told = reader.sh(curls)
        assert '"key":"the","value":3' in told
        assert '[{"key":"the","value":3},{"key":"city","value":2}]' in told
        found = reader.sh(queries)
        assert '"city"' in found
        assert '"river"' in found
        reader.python(asking)
        running.pause()
        assert running.is_paused
        assert running.store("counts").get("the").value == 3
    assert running.state == "NOT_RUNNING"
    monkeypatch.delitem(sys.modules, "app")

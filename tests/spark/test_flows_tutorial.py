"""docs/tutorial-flows.md is executed as it stands, with a worker in the session of these tests."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.testing import eventually
from tests.cli.running import Moldau

from .conftest import Cluster
from .test_flows import PATIENCE_S, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial-flows.md"
BLOCK = re.compile(r'```(python title="app.py"|python|sh|text)\n(.*?)```', re.DOTALL)


class Reader:
    """Somebody who types what the page says. A text after commands is what they print, if not at once then soon."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self._last, self._said = folder, "", ""
        self._moldau = Moldau(servers, folder)

    def follow(self, kind: str, text: str) -> None:
        match kind:
            case "python":
                exec(compile(text, PAGE.name, "exec"), {"__name__": "page"})
            case "sh":
                lines = text.strip().splitlines()
                self._last, self._said = lines[-1], "".join(self.sh(line) for line in lines)
            case "text":
                try:
                    eventually(lambda: self._shows(text), PATIENCE_S, f"{text!r} from {self._last}")
                except AssertionError as error:
                    raise AssertionError(f"{error}; it printed {self._said!r}") from None
            case _:
                (self.folder / "app.py").write_text(text)

    def _shows(self, text: str) -> bool:
        if all(line in self._said for line in text.splitlines()):
            return True
        self._said = self.sh(self._last)
        return False

    def sh(self, line: str) -> str:
        """Run `moldau ...` or `printf ... | moldau ...`, in this process: to start one for each takes a minute."""
        given, _, command = line.rpartition(" | ")
        name, *words = shlex.split(command)
        assert name == "moldau", line
        stdin = subprocess.run(["bash", "-c", given], capture_output=True, check=True).stdout if given else b""
        done = self._moldau.run(*words, stdin=stdin)
        assert done.code == 0, f"{line}: {done.out}{done.err}"
        return f"{done.out}{done.err}"


@pytest.mark.timeout(1200)
def test_the_tutorial_runs(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    reader, blocks = Reader(tmp_path, cluster.servers), BLOCK.findall(PAGE.read_text())
    assert {kind.split()[0] for kind, _ in blocks} == {"python", "sh", "text"}
    log, said = tmp_path / "logs" / "order-counts.log", ""
    with working("desk", cluster, tmp_path, spark):
        for kind, text in blocks:
            reader.follow(kind, text)
            said = log.read_text() if log.exists() else said
    assert said.count("failed on desk") == 1, "only the version that was taken back"
    monkeypatch.delitem(sys.modules, "app")

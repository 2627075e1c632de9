"""docs/rest.md says what is true: its examples run, one after the other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.rest.running import Running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rest.md"


@pytest.mark.needs("curl")
def test_the_examples_of_the_page_run(rest: Running) -> None:
    blocks = re.findall(r"```(bash|python)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["bash", "python"]
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), {"REST": rest.url})
            continue
        script = f"set -e\nREST={rest.url}\n{text}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.count('"error_code":200') == 2, done.stdout
        assert done.stdout.count('"kind":"KafkaPartition"') == 3

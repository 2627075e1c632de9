"""docs/client.md says what is true: its examples run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


def test_the_examples_of_the_page_run(moldau_servers: str) -> None:
    scope = {"bootstrap_servers": moldau_servers}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)

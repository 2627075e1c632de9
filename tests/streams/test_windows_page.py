"""The examples of docs/streams-windows.md, run one after the other."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streams-windows.md"


def test_the_examples_of_the_page_run() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(examples) >= 4
    world: dict[str, object] = {}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), world)

"""docs/views.md says what is true: its examples run, on a broker that has the application's changelogs."""

from __future__ import annotations

import re
from pathlib import Path

from moldau.streams import StreamsBuilder, TopologyTestDriver
from tests.views.conftest import World

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "views.md").read_text()


def test_the_examples_of_the_page_run(world: World) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {"bootstrap_servers": world.servers}
    first, last = blocks[0].split("stores = ")
    exec(compile(first, "docs/views.md", "exec"), names)
    builder = names["builder"]
    assert isinstance(builder, StreamsBuilder)
    with TopologyTestDriver(builder, {"statestore.cache.max.bytes": 0}) as driver:
        topic = driver.create_input_topic("orders")
        for number, (item, amount) in enumerate((("pen", 2), ("book", 12))):
            topic.pipe_input("ann", {"item": item, "amount": amount}, number)
        for store in ("latest_order", "per_minute"):
            world.log(driver, f"shop-{store}-changelog")
    for block in (f"stores = {last}", *blocks[1:]):
        exec(compile(block, "docs/views.md", "exec"), names)
    names["stores"].close()  # type: ignore[attr-defined]

"""Which tests stay together in one worker of pytest-xdist, and which begin first.

A plugin, loaded by conftest.py. The tests of a file run in one worker, and so do those of files that share something
costly: a Spark, a JVM with Kafka's tools, an Apache Kafka, a browser. Otherwise each worker would start its own. What
takes longest begins first, so that no worker is left with it at the end. Spark alone fills half of the cores, because
its driver and its workers wait for each other; that is why it runs beside everything else, and not after it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.needs import table

# A folder whose tests stay together -> the tool that they need for it, as tests/needs.toml says; "" for all of them.
TOGETHER = {
    "tests/spark/": "java",
    "tests/conformance/test_": "java",
    "tests/client/": "",
    "tests/console/browser/": "",
    "tests/rest/": "",
    "tests/registry/test_": "",
}
# It has a driver of its own and waits for most of its time: beside the others.
ALONE = {"tests/spark/test_chaos.py"}
FIRST = (
    "tests/spark/",
    "tests/spark/test_chaos.py",
    "tests/conformance/test_",
    "tests/simulation/test_simulation.py",
    "tests/cluster/simulation/test_simulation.py",
    "tests/conformance/differential/test_differential.py",
    "tests/cluster/test_commands.py",
    "tests/cluster/test_guest.py",
    "tests/cluster/test_bad_neighbours.py",
    "tests/cluster/test_named_cases.py",
    "tests/cluster/chaos/test_chaos.py",
    "tests/testing/test_clusters.py",
    "tests/console/browser/",
    "tests/test_docs.py",
    "tests/test_platform.py",
    "tests/client/",
    "tests/rest/",
    "tests/crash/test_word_count.py",
    "tests/plan/test_columns.py",
    "tests/registry/test_",
    "tests/cli/test_page.py",
    "tests/streams/judge/test_judge.py",
    "tests/test_tidy.py",
    "tests/examples/test_streams.py",
    "tests/examples/test_orders.py",
)


@cache
def group_of(file: str) -> str:
    """Return the name of what a file's tests stay together with: a folder of TOGETHER, or the file itself."""
    if file in ALONE:
        return file
    for folder, tool in TOGETHER.items():
        if file.startswith(folder) and (not tool or file in table()[tool].tests):
            return folder
    return file


@cache
def rank(file: str) -> int:
    """Return the place of a file's tests in the queue."""
    group = group_of(file)
    return FIRST.index(group) if group in FIRST else len(FIRST)


class Scheduling(LoadScopeScheduling):
    """Hands the groups out whole, in the order in which the workers have collected them."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort what a worker has collected; a run without workers keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid.partition("::")[0]))

"""docs/swap.md says what is true: its commands swap three Kafka nodes, and one of them back."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Moldau
from tests.cluster.clients import admin, place, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, Member, cluster, eventually
from tests.needs import ROOT
from tests.test_docs import COMMANDS

pytestmark = pytest.mark.needs("java", "kafka-jars")
PAGE = ROOT / "docs" / "swap.md"
NODES, WAIT_S = (1, 2, 3), 240.0
# What is done on the machine of a node. All else on the page is run by a shell.
THERE = {
    "kafka-server-stop.sh": (KAFKA, None),
    "moldau broker --config server.properties": (None, MOLDAU),
    "kafka-server-stop": (MOLDAU, None),
    "kafka-server-start.sh -daemon server.properties": (None, KAFKA),
}


@pytest.fixture
def trio(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = dict.fromkeys(NODES, (KAFKA, "broker,controller"))
    with cluster(kafka_libs, tmp_path_factory.mktemp("page"), nodes) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == set(NODES), WAIT_S)
        yield made


def commands(title: str) -> list[str]:
    """Return the lines of the shell blocks of a section."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def carry_out(made: Cluster, node: Member, lines: list[str]) -> None:
    for line in lines:
        if line not in THERE:
            shell(made, node.folder, line)
            continue
        stopped, started = THERE[line]
        if stopped is not None:
            assert node.kind == stopped
            node.leave()
        if started is not None:
            node.kind = started
            node.start()
            node.await_port()


def shell(made: Cluster, folder: Path, line: str) -> None:
    environment = {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": made.bootstrap, "XDG_CONFIG_HOME": str(folder)}
    command = ["bash", "-e", "-c", f"{COMMANDS}\n{line}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, env=environment, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    print(f"$ {line}\n{done.stdout}")


def test_the_commands_of_the_page_swap_a_cluster_and_a_node_back(trio: Cluster, tmp_path: Path) -> None:
    moldau = Moldau(trio.bootstrap, tmp_path)
    place(trio, "t", NODES, 4, min_insync_replicas="2")
    produce(trio, "t", range(1000))
    carry_out(trio, trio[1], commands("Look first"))
    for count in range(1, len(NODES) + 1):
        node = moldau.json("cluster", "swap", "--plan")["steps"][0]["node"]
        produce(
            trio,
            "t",
            range(1000 * count, 1000 * (count + 1)),
            lambda node=node: carry_out(trio, trio[node], commands("Each node in turn")),
        )
    assert [row["kind"] for row in moldau.json("cluster", "brokers")] == ["Moldau"] * len(NODES)
    carry_out(trio, trio[2], commands("And back"))
    assert [row["kind"] for row in moldau.json("cluster", "brokers")] == ["Moldau", "Kafka", "Moldau"]
    assert read(trio, "t", 4000) == list(range(4000))

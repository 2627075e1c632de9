"""Kafka's own tools and ours say the same: one command line a tool or two; `make conformance` plays them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.cli.kafka.exceptions import class_name
from moldau.client import Error
from tests.conformance.java_tools import Tools
from tests.conformance.kafka_tools.cases import CASES, Case
from tests.conformance.kafka_tools.compare import Scene, differences, scene

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

PROGRAM = """
import org.apache.kafka.common.protocol.Errors;
public class Classes {
    public static void main(String[] args) {
        for (Errors e : Errors.values())
            if (e.exception() != null) System.out.println(e.name() + " " + e.exception().getClass().getName());
    }
}
"""


@pytest.fixture(scope="module")
def both(run: Tools, fresh_name: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(run, fresh_name("kt"), tmp_path_factory.mktemp("files")) as made:
        yield made


@pytest.mark.parametrize("case", [case for case in CASES if case.quick], ids=str)
def test_both_say_the_same(both: Scene, case: Case) -> None:
    if "{own} --verbose" in case.words:
        differences(both, Case(case.tool, "--reset-offsets --group {own} --topic {topic} --to-earliest --execute"))
    found = differences(both, case)
    assert not found, "\n".join(found)


def test_errors_have_the_names_of_kafkas_classes(kafka_libs: Path, tmp_path: Path) -> None:
    import subprocess

    program = tmp_path / "Classes.java"
    program.write_text(PROGRAM)
    command = ["java", "-cp", f"{kafka_libs}/*", str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = dict(line.split() for line in lines)
    assert theirs == {name: class_name(Error[name]) for name in theirs}

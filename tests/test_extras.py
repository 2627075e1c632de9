"""The platform needs no more than `make up` installs, and whatever needs more says which command installs it.

A child process has all other packages of this environment hidden, as if they had never been installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from moldau import extras
from moldau.testing import Broker

HIDING = """
import importlib.machinery, os

hidden = frozenset(os.environ["HIDDEN"].split(","))
find_spec = importlib.machinery.PathFinder.find_spec


def find(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find_spec(name, path, target)


importlib.machinery.PathFinder.find_spec = classmethod(find)
"""
APPLICATION = """
from moldau.streams import StreamsBuilder, String

builder = StreamsBuilder("loud")
builder.stream("quiet", key=String(), value=String()).to("loud", key=String(), value=String())
"""
SEARCH = """
import sys
import moldau.console.site, moldau.registry, moldau.rest
from moldau.client import Client, build, Record, produce
from moldau.console.browsing import Wanted
from moldau.console.decoding import Decoder
from moldau.console.search import expression, scanning
from moldau.records.positions import BEGINNING, Span

topic, connect = sys.argv[2], lambda: None
with Client({"bootstrap.servers": sys.argv[1]}) as client:
    produce(client, topic, 0, build([Record(timestamp=1, value=b'{"n": %d}' % n) for n in range(5)]))
    search, condition = scanning.Search(10), expression.condition("value.n > 2")
    scanning.run(search, client, Wanted(topic, None, Span(BEGINNING), 10), condition, Decoder(topic, connect), connect)
print([row.offset for row in search.rows], "numba" in sys.modules)
"""
WITHOUT_SPARK = """
import app
from moldau import extras
from moldau.cli.up import Options, without_what_lacks_java
from moldau.spark import run, session


def report(call):
    try:
        call()
    except extras.NotInstalled as error:
        print(error)


report(lambda: session("orders"))
report(lambda: app.builder.run())
report(lambda: app.builder.start())
without_what_lacks_java(Options(demo=("shop", "pipeline")), print)
"""


@cache
def hidden() -> str:
    """Return the importable names that only packages outside of moldau[console] have."""
    wanted, seen = [("moldau", frozenset({"console"}))], set()
    while wanted:
        name, chosen = wanted.pop()
        seen.add(normal(name))
        for text in metadata.requires(name) or ():
            needed = Requirement(text)
            applies = needed.marker is None or any(needed.marker.evaluate({"extra": one}) for one in chosen or {""})
            if applies and normal(needed.name) not in seen:
                wanted.append((needed.name, frozenset(needed.extras)))
    owners = metadata.packages_distributions().items()
    return ",".join(module for module, names in owners if not {normal(name) for name in names} & seen)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(HIDING)
    (folder / "app.py").write_text(APPLICATION)
    environment = {**os.environ, "HIDDEN": hidden(), "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_packages_beyond_the_platform_are_hidden_and_its_own_are_not() -> None:
    names = hidden().split(",")
    assert {"pyspark", "pandas", "numba", "llvmlite", "pytest"} < set(names)
    assert not {"moldau", "nicegui", "duckdb", "pyarrow", "numpy", "confluent_kafka", "uvloop"} & set(names)


def test_parts_start_and_searches_work_with_what_make_up_installs(tmp_path: Path, kafka: Broker) -> None:
    kafka.create_topic("numbers")
    done = run(tmp_path, "-c", SEARCH, kafka.bootstrap_servers, "numbers")
    assert done.stdout.strip() == "[3, 4] False", done.stderr


def test_whatever_first_needs_spark_says_which_command_installs_it(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", WITHOUT_SPARK)
    sentence = f"Spark needs pyspark, pandas, not installed here: {extras.command('spark')}."
    assert done.stdout.splitlines() == [
        *[sentence] * 3,
        f"The demo runs without its streams applications. {sentence}",
    ], done.stderr


def test_running_an_application_from_the_shell_without_spark_is_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "moldau", "streams", "run", "app.py")
    assert done.returncode == 1 and done.stderr.startswith("moldau streams run: Spark needs pyspark, pandas, not")
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    ("made_by_make", "sentence"), [(True, "run `make spark` in {}"), (False, "run `pip install 'moldau[spark]'`")]
)
def test_the_command_is_of_whoever_made_the_environment(
    made_by_make: bool, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv" if made_by_make else tmp_path / "other"))
    assert extras.command("spark") == sentence.format(tmp_path)

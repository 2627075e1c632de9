"""`moldau schema` against a real registry, and the page docs/registry.md, whose examples are run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Broker, broker
from tests.registry.running import BROKER, Running, record, running, unique

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "registry.md"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker(BROKER) as started:
        yield started


@pytest.fixture
def registry(kafka: Broker) -> Iterator[Running]:
    """Each test has an empty one."""
    name = unique("_schemas")
    given = (f"kafkastore.topic={name}", f"schema.registry.group.id={name}")
    with running(kafka.bootstrap_servers, *given) as started:
        yield started


def run(registry: Running, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", "schema", *words, "--registry", registry.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def said(registry: Running, *words: str) -> str:
    ended = run(registry, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.rstrip("\n")


def test_a_schema_from_its_file_to_its_end(registry: Running, tmp_path: Path) -> None:
    one, two, bad = (tmp_path / f"{name}.avsc" for name in ("one", "two", "bad"))
    one.write_text(json.dumps(record("x:int")))
    two.write_text(json.dumps(record("x:int", "y:string", y="")))
    bad.write_text(json.dumps(record("x:string")))
    assert said(registry, "register", "a/b", str(one)) == "id 1, version 1"
    assert said(registry, "check", "a/b", str(two)) == "compatible"
    refused = run(registry, "check", "a/b", str(bad), "--version", "1")
    assert refused.returncode == 3 and "TYPE_MISMATCH" in refused.stdout
    assert said(registry, "register", "a/b", str(two)) == "id 2, version 2"
    assert said(registry, "list") == "a/b"
    assert json.loads(said(registry, "show", "a/b", "1")) == json.loads(said(registry, "show", "1")) == record("x:int")
    assert json.loads(said(registry, "show", "a/b", "-o", "json"))["version"] == 2
    assert '+      "name": "y",' in said(registry, "diff", "a/b", "1").splitlines()
    assert said(registry, "level", "a/b") == "BACKWARD"
    assert said(registry, "level", "a/b", "--set", "none") == "NONE"
    assert said(registry, "level", "a/b", "--reset") == "BACKWARD"
    assert said(registry, "delete", "a/b", "1") == "deleted 1"
    assert said(registry, "delete", "a/b") == "deleted 2"
    assert said(registry, "list") == ""
    assert json.loads(said(registry, "list", "--deleted", "-o", "json")) == ["a/b"]
    assert said(registry, "delete", "a/b", "--permanent") == "deleted 1, 2"


def test_mistakes_are_told_in_a_sentence(registry: Running, tmp_path: Path) -> None:
    for words, sentence in (
        (("show", "nobody"), "There is no subject 'nobody'. (40401)"),
        (("register", "s", str(tmp_path / "none.avsc")), "No such file"),
        (("register", "s", __file__, "--reference", "x"), "NAME=SUBJECT:VERSION"),
        (("level", "--set", "SIDEWAYS"), "(42203)"),
    ):
        ended = run(registry, *words)
        assert ended.returncode == 1 and sentence in ended.stderr and "Traceback" not in ended.stderr
    command = [sys.executable, "-m", "moldau", "schema", "list", "--registry", "http://127.0.0.1:1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "No registry at" in ended.stderr


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.skipif(not shutil.which("curl"), reason="the page uses curl")
def test_the_examples_of_the_page_do_what_they_say(registry: Running, tmp_path: Path) -> None:
    tools = {**os.environ, "SCHEMA_REGISTRY_URL": registry.url, "MOLDAU": f"{sys.executable} -m moldau"}
    ran = 0
    for block in blocks("sh"):
        script = block.replace("http://localhost:8081", registry.url)
        script = re.sub(r"^moldau ", "$MOLDAU ", script, flags=re.MULTILINE)
        if "moldau registry" in block:
            continue  # it runs already
        ended = subprocess.run(
            ["sh", "-e", "-c", script], env=tools, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, f"{block}\n{ended.stdout}{ended.stderr}"
        wanted = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]
        for line in wanted:
            assert line in ended.stdout, f"{line!r} is not in {ended.stdout!r}"
        ran += 1
    assert ran >= 2
    for block in blocks("python"):
        exec(compile(block.replace("http://localhost:8081", registry.url), str(PAGE), "exec"), {})

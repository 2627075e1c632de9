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
from tests.cli.running import Moldau
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


@pytest.fixture
def schema(kafka: Broker, registry: Running, tmp_path: Path) -> Moldau:
    return Moldau(kafka.bootstrap_servers, tmp_path / "home", SCHEMA_REGISTRY_URL=registry.url)


def said(schema: Moldau, *words: str) -> str:
    return schema("schema", *words).rstrip("\n")


def test_a_schema_from_its_file_to_its_end(schema: Moldau, tmp_path: Path) -> None:
    one, two, bad = (tmp_path / f"{name}.avsc" for name in ("one", "two", "bad"))
    one.write_text(json.dumps(record("x:int")))
    two.write_text(json.dumps(record("x:int", "y:string", y="")))
    bad.write_text(json.dumps(record("x:string")))
    assert said(schema, "register", "a/b", str(one)) == "id 1, version 1"
    assert said(schema, "check", "a/b", str(two)) == "compatible"
    refused = schema.run("schema", "check", "a/b", str(bad), "--version", "1")
    assert refused.code == 3 and "TYPE_MISMATCH" in refused.out
    assert said(schema, "register", "a/b", str(two)) == "id 2, version 2"
    assert said(schema, "list") == "a/b"
    assert json.loads(said(schema, "show", "a/b", "1")) == json.loads(said(schema, "show", "1")) == record("x:int")
    assert json.loads(said(schema, "show", "a/b", "-o", "json"))["version"] == 2
    assert '+      "name": "y",' in said(schema, "diff", "a/b", "1").splitlines()
    assert said(schema, "lookup", "a/b", str(one)) == "id 1, version 1"
    assert [row["id"] for row in schema.json("schema", "versions", "a/b")] == [1, 2]
    assert schema.json("schema", "users", "2") == [{"subject": "a/b", "version": 2}]
    assert schema.json("schema", "users", "a/b", "1") == []
    assert said(schema, "mode", "a/b", "--set", "READONLY") == "READONLY"
    assert said(schema, "mode", "a/b", "--reset") == "READWRITE"
    assert said(schema, "level", "a/b") == "BACKWARD"
    assert said(schema, "level", "a/b", "--set", "none") == "NONE"
    assert said(schema, "level", "a/b", "--reset") == "BACKWARD"
    assert said(schema, "delete", "a/b", "1") == "deleted 1"
    assert said(schema, "delete", "a/b") == "deleted 2"
    assert said(schema, "list") == ""
    assert json.loads(said(schema, "list", "--deleted", "-o", "json")) == ["a/b"]
    assert said(schema, "delete", "a/b", "--permanent") == "deleted 1, 2"


def test_mistakes_are_told_in_a_sentence(schema: Moldau, tmp_path: Path) -> None:
    for words, sentence in (
        (("show", "nobody"), "Subject 'nobody' not found. (40401)"),
        (("register", "s", str(tmp_path / "none.avsc")), "No such file"),
        (("register", "s", __file__, "--reference", "x"), "NAME=SUBJECT:VERSION"),
        (("level", "--set", "SIDEWAYS"), "(42203)"),
        (("list", "--registry", "http://127.0.0.1:1"), "No registry at"),
    ):
        ended = schema.run("schema", *words)
        assert ended.code == 1 and sentence in ended.err and "Traceback" not in ended.err


def test_records_with_schemas_both_ways(schema: Moldau, tmp_path: Path) -> None:
    order = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "item", "type": ["null", "string"], "default": None},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    avro, proto, shape = (tmp_path / f"order.{suffix}" for suffix in ("avsc", "proto", "json"))
    avro.write_text(json.dumps(order))
    proto.write_text(
        'syntax = "proto3"; message Other { int32 x = 1; } message Order { int64 id = 1; string item = 2; }'
    )
    shape.write_text('{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}')
    line = '{"id":1,"item":"book","price":"12.50","at":"2026-11-15T10:00:00+00:00"}'
    for format, file, lines, more in (
        ("avro", avro, [line, '{"id":2,"item":{"string":"x"},"price":3,"at":0}'], ()),
        ("protobuf", proto, ['{"id":"7","item":"pen"}'], ("--value-message", "Order")),
        ("json-schema", shape, ['{"id":1,"more":[]}'], ()),
    ):
        topic = schema.topic()
        schema.write(topic, *lines, options=("-s", format, "--value-schema", str(file), *more))
        schema.write(topic, lines[0], options=("-s", format, *more))  # with the latest of the subject
        read = schema.read(topic, options=("-s", format))
        assert read[0] == read[-1] == lines[0] and len(read) == len(lines) + 1
        assert schema.read(topic, options=("-s", "registry"))[0] == lines[0]
        envelope = json.loads(schema.read(topic, options=("-s", "registry", "-J"))[0])
        assert envelope["payload"] == json.loads(lines[0])
        refused = schema.run("produce", topic, "-s", format, *more, stdin='{"id": "no number"}\n')
        assert refused.code == 1 and "Line 1" in refused.err, refused
    newer = {**order, "fields": [order["fields"][0], {"name": "paid", "type": "boolean", "default": False}]}  # type: ignore[index]
    avro.write_text(json.dumps(newer))
    topic = schema.topic()
    schema.write(topic, '{"id":5,"paid":true}', options=("-s", "avro", "--value-schema", str(avro)))
    number = str(schema.json("schema", "show", f"{topic}-value")["id"])
    assert schema.read(topic, options=("-s", "avro", "--value-schema", number)) == ['{"id":5,"paid":true}']
    schema.write(topic, "plain text")
    done = schema.run("consume", topic, "--exit", "-s", "avro")
    assert done.code == 1 and f"{topic}-0 offset 1" in done.err
    assert schema.read(topic, options=("-s", "registry"))[1] == "plain text"


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

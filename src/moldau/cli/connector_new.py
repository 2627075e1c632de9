"""The package that `moldau connector new` makes: a connector, its entry point and a test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from moldau.admin.mistakes import Mistake

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "moldau-connector-{dashed}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["moldau"]

[project.entry-points."moldau.connectors"]
{name} = "{name}:{name}"

[tool.hatch.build.targets.wheel]
only-include = ["{name}.py"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

SOURCE = '''\
"""A source: counts, once every so many seconds. Replace the loop by what reads your system."""

from collections.abc import Iterator
from typing import Annotated

from moldau.connect import Between, Offsets, Record, Task, source


class Settings:
    start: Annotated[int, "The first number."] = 0
    every: Annotated[float, "Seconds between two numbers.", Between(0)] = 1.0


@source
def {name}(config: Settings, offsets: Offsets, task: Task) -> Iterator[Record]:
    number = offsets.get("next", config.start)
    while not task.wait(config.every):
        yield Record(key=str(number), value={{"number": number}}, offset={{"next": number + 1}})
        number += 1
'''

SOURCE_TEST = """\
from {name} import {name}


def test_records_arrive_in_order(connect):
    connect.run({name}, topic="{dashed}", start=5, every=0.01)
    records = connect.records("{dashed}", 3)
    assert [one.value["number"] for one in records[:3]] == [5, 6, 7]
"""

SINK = '''\
"""A sink: appends values to a file. Replace the body by what writes to your system."""

import json
from typing import Annotated

from moldau.connect import Row, sink


class Settings:
    path: Annotated[str, "The file to append to."]


@sink
def {name}(config: Settings, rows: list[Row]) -> None:
    with open(config.path, "a") as file:
        file.writelines(json.dumps(row.value) + "\\n" for row in rows)
'''

SINK_TEST = """\
from {name} import {name}

from moldau.testing import eventually


def test_values_arrive(connect, tmp_path):
    path = tmp_path / "out"
    connect.send("{dashed}", {{"number": 1}}, {{"number": 2}})
    connect.run({name}, topics="{dashed}", path=str(path))
    eventually(lambda: path.exists() and len(path.read_text().splitlines()) == 2)
"""


def make(name: str, folder: Path, *, is_sink: bool) -> list[Path]:
    """Write the files of a package into a folder of its name; Mistake if it cannot be called so or exists."""
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module) or keyword.iskeyword(module):
        raise Mistake(f"{name!r} cannot be the name of a Python module: use small letters, digits and dashes.")
    into = folder / name
    if into.exists():
        raise Mistake(f"{into} exists already.")
    texts = {
        "pyproject.toml": PROJECT,
        f"{module}.py": SINK if is_sink else SOURCE,
        f"test_{module}.py": SINK_TEST if is_sink else SOURCE_TEST,
    }
    into.mkdir(parents=True)
    for file, text in texts.items():
        (into / file).write_text(text.format(name=module, dashed=module.replace("_", "-")))
    return [into / file for file in texts]

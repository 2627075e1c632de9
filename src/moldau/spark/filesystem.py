"""The Java class that spares a process for each checkpoint file: compiled once, where there is a javac, and kept."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from moldau.spark.java import OLDEST, cache

SOURCE = Path(__file__).parent / "java" / "PlainLocalFileSystem.java"
CLASS = "moldau.PlainLocalFileSystem"
COMPILE_SECONDS = 120
log = logging.getLogger("moldau.spark")


def class_path(home: Path) -> Path | None:
    """The folder of the compiled class; None where it cannot be had, and then Spark runs without it."""
    jars = hadoop_jars()
    named = hashlib.sha256(SOURCE.read_bytes() + " ".join(jar.name for jar in jars).encode()).hexdigest()[:12]
    target = cache() / f"filesystem-{named}"
    if target.exists():
        return target
    compiler = shutil.which("javac", path=f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    return build(compiler, jars, target) if compiler and jars else None


def hadoop_jars() -> list[Path]:
    import pyspark

    return sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))


def build(compiler: str, jars: list[Path], target: Path) -> Path | None:
    """Compile beside the target and rename: two sessions may start at the same time."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            names = os.pathsep.join(map(str, jars))
            command = [compiler, "--release", str(OLDEST), "-cp", names, "-d", f"{scratch}/classes", str(SOURCE)]
            subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)
            Path(scratch, "classes").rename(target)
    except (OSError, subprocess.SubprocessError) as error:
        if not target.exists():
            log.info("Checkpoints are slower than they could be, for %s was not compiled: %s", CLASS, error)
            return None
    return target

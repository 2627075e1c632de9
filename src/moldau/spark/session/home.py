"""A home for Spark on this machine, from which its Python processes start in less than half the time.

Spark puts `python/lib/pyspark.zip` of its home before everything else on the path of the processes of Python that it
starts. That has source only, which each of them compiles anew: a second of a processor, a few times for each query. A
home with everything but that folder lets them find PySpark where it is installed.
"""

from __future__ import annotations

import hashlib
import os
import site
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.spark.session.java import cache
from moldau.spark.session.private import spark_home

PARTS = ("bin", "jars", "sbin")
VARIABLE, PYTHON = "SPARK_HOME", "PYSPARK_PYTHON"


@contextmanager
def light() -> Iterator[None]:
    """While Spark is started its home is the light one, if Python can do without the other."""
    installed = found()
    if installed is None:
        yield
        return
    os.environ[VARIABLE] = str(linked(installed, cache()))
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def jars() -> Path:
    """Where Java finds Spark's classes."""
    installed = found()
    if installed is not None:
        return linked(installed, cache()) / "jars"
    return spark_home() / "jars"


def found() -> Path | None:
    """Where PySpark is installed, if new processes of the same Python find it there by themselves."""
    import pyspark

    installed = Path(pyspark.__file__).parent
    other_python = os.environ.get(PYTHON, sys.executable) != sys.executable
    if VARIABLE in os.environ or other_python or not (installed / "jars").is_dir():
        return None
    known = [*site.getsitepackages(), site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return installed if str(installed.parent) in known else None


def linked(installed: Path, where: Path) -> Path:
    """A folder of links to what is in a home, but for the zip of PySpark."""
    names = [name for name in PARTS if (installed / name).exists()]
    text = "\n".join([str(installed), *names])
    target = where / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if target.exists():
        return target
    where.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        fresh = Path(scratch, "home")
        fresh.mkdir()
        for name in names:
            (fresh / name).symlink_to(installed / name)
        try:
            fresh.rename(target)
        except OSError:
            if not target.exists():  # else another session was quicker
                raise
    return target

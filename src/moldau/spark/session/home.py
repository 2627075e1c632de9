"""A light home for Spark on this machine, with which its Python processes start in less than half the time.

Spark puts `python/lib/pyspark.zip` of its home first on the path of the Python processes that it starts. The zip has
source only, which each process compiles anew: a second of processor time, a few times per query. The light home is a
copy without that folder, so they find PySpark where it is installed.
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
    """Let Spark start with the light home, where that works."""
    installed = find_pyspark()
    if installed is None:
        yield
        return
    os.environ[VARIABLE] = str(link(installed, cache()))
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def jars() -> Path:
    """Return the folder where Java finds Spark's classes."""
    installed = find_pyspark()
    return (spark_home() if installed is None else link(installed, cache())) / "jars"


def find_pyspark() -> Path | None:
    """Return where PySpark is installed, if new processes of the same Python find it there by themselves."""
    import pyspark

    installed = Path(pyspark.__file__).parent
    other_python = os.environ.get(PYTHON, sys.executable) != sys.executable
    if VARIABLE in os.environ or other_python or not (installed / "jars").is_dir():
        return None
    known = [*site.getsitepackages(), site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return installed if str(installed.parent) in known else None


def link(installed: Path, where: Path) -> Path:
    """Make a folder of links to the parts of a home, without the zip of PySpark."""
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
            if not target.exists():  # otherwise another session was faster
                raise
    return target

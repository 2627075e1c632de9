"""Our Java classes, compiled once where there is a javac, and cached. Spark runs without them too.

One saves a process for each checkpoint file, one reports finished batches to Python, one filters standard error.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from moldau.spark.session.java import OLDEST, cache

SOURCES = Path(__file__).parent / "java"
FILE_SYSTEM = "moldau.PlainLocalFileSystem"
LISTENER = "moldau.BatchListener"
ERRORS = "moldau.QuietErrors"
COMPILE_SECONDS = 120
log = logging.getLogger("moldau.spark")


def class_path(home: Path) -> Path | None:
    """Return the jar of the compiled classes; None where they cannot be compiled."""
    sources, jars = sorted(SOURCES.glob("*.java")), spark_jars()
    text = b"".join(source.read_bytes() for source in sources) + " ".join(jar.name for jar in jars).encode()
    target = cache() / f"classes-{hashlib.sha256(text).hexdigest()[:12]}.jar"
    if target.exists():
        return target
    compiler = shutil.which("javac", path=f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    return build(compiler, jars, sources, target) if compiler and jars else None


def spark_jars() -> list[Path]:
    import pyspark

    return sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))


def build(compiler: str, jars: list[Path], sources: list[Path], target: Path) -> Path | None:
    """Compile next to the target and rename, because two sessions may start at the same time."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            names = os.pathsep.join(map(str, jars))
            command = [compiler, "--release", str(OLDEST), "-cp", names, "-d", f"{scratch}/classes", *map(str, sources)]
            subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)
            Path(shutil.make_archive(f"{scratch}/classes", "zip", f"{scratch}/classes")).rename(target)
    except (OSError, subprocess.SubprocessError) as error:
        if not target.exists():
            log.info("Checkpoints are slower, because %s was not compiled: %s", FILE_SYSTEM, error)
            return None
    return target

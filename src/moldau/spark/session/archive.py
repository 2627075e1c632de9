"""An archive of Spark's classes, from which Java starts with two thirds of the work (AppCDS).

The first session on a machine has Java write one when it ends; sessions after that read it. It belongs to one Java, one
Spark and one place of both. Java goes without an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

from moldau.spark.session.java import cache

QUIET = "-Xlog:cds*=off"  # Java tells of hundreds of classes that cannot be in an archive
SETTLED_S = 60.0  # an archive that nobody has written to for so long is whole
MOST_UNSETTLED = 4  # sessions that write one at the same time
log = logging.getLogger("moldau.spark")


def java_options(home: Path, jars: Path, more: Path | None) -> str:
    """What Java is told: read the archive, or write one."""
    release = home / "release"
    parts = (home, release.read_text() if release.exists() else "", jars, jars.resolve(), more)
    target = cache() / f"spark-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}.jsa"
    try:
        settle(target, time.time())
        left = len(list(target.parent.glob(f"{target.stem}-*")))
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.info("Spark starts slower than it could, for there is no archive of its classes: %s", error)
        return QUIET
    if target.exists():
        return f"-XX:SharedArchiveFile={target} {QUIET}"
    if left >= MOST_UNSETTLED:
        return QUIET
    return f"-XX:ArchiveClassesAtExit={target.parent / f'{target.stem}-{os.getpid()}.jsa'} {QUIET}"


def settle(target: Path, now: float) -> None:
    """Take over what a session has left when it ended; Java writes for some seconds after Python is gone."""
    for left in target.parent.glob(f"{target.stem}-*"):
        if now - left.stat().st_mtime < SETTLED_S:
            continue
        if target.exists():
            left.unlink(missing_ok=True)
        else:
            left.replace(target)

"""An archive of Spark's classes (AppCDS), which saves Java a third of the work when it starts.

Java writes it at the end of the first session on a machine; later sessions read it. It fits one version and location of
Java and Spark; Java ignores an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

from moldau.spark.session.java import cache

QUIET = "-Xlog:cds*=off"  # otherwise Java warns of hundreds of classes that it cannot archive
SETTLED_S = 60.0  # an archive that has not changed for so long is complete
MOST_UNSETTLED = 4  # sessions that may write an archive at the same time
log = logging.getLogger("moldau.spark")


def java_options(home: Path, jars: Path, more: Path | None) -> str:
    """Return the options that make Java read the archive, or write one."""
    release = home / "release"
    parts = (home, release.read_text() if release.exists() else "", jars, jars.resolve(), more)
    target = cache() / f"spark-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}.jsa"
    try:
        settle(target, time.time())
        left = len(list(target.parent.glob(f"{target.stem}-*")))
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.info("Spark starts more slowly, because there is no archive of its classes: %s", error)
        return QUIET
    if target.exists():
        return f"-XX:SharedArchiveFile={target} {QUIET}"
    if left >= MOST_UNSETTLED:
        return QUIET
    return f"-XX:ArchiveClassesAtExit={target.parent / f'{target.stem}-{os.getpid()}.jsa'} {QUIET}"


def settle(target: Path, now: float) -> None:
    """Adopt the archive that an earlier session left; Java writes for some seconds after Python has ended."""
    for left in target.parent.glob(f"{target.stem}-*"):
        if now - left.stat().st_mtime < SETTLED_S:
            continue
        if target.exists():
            left.unlink(missing_ok=True)
        else:
            left.replace(target)

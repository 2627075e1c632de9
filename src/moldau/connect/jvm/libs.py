"""What the host needs: a JDK, Connect's own jars, and its classes, which are compiled on first use and cached."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from moldau.connect.errors import ConnectError

VERSION = "4.3.1"
OLDEST = 17
SOURCES = Path(__file__).parent / "java"
COMPILE_S = 300
FETCH_S = 900
LIBS = "moldau.plugin.libs"
NEEDED = (
    ("org.apache.kafka", "connect-json", VERSION),
    ("org.apache.kafka", "connect-transforms", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
Artifact = tuple[str, str, str]


class Unavailable(ConnectError):
    """Java plugins cannot run here; the text says what to do."""


def cache() -> Path:
    """Return the user's folder for caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau"


def program(name: str) -> str:
    """Return the path of `java` or `javac`: that of JAVA_HOME, or of PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin" if home else None)
    if found is None:
        where = f"in JAVA_HOME, {home}" if home else "on PATH"
        raise Unavailable(f"Java plugins need a JDK, {OLDEST} or later, and there is no {name} {where}.")
    return found


def connect_jars(given: str = "") -> list[Path]:
    """Return Connect's jars: those of a folder, or those that Maven fetches once."""
    folder = Path(given) if given else cache() / f"connect-{VERSION}"
    if not given and not folder.exists():
        fetch(NEEDED, folder)
    jars = sorted(folder.glob("*.jar"))
    if not any(one.name.startswith("connect-api-") for one in jars):
        raise Unavailable(f"{LIBS} is {given}, where there is no connect-api: name the libs of an Apache Kafka.")
    return jars


def fetch(artifacts: tuple[Artifact, ...], into: Path) -> None:
    """Fetch artifacts and all that they need at run time, by Maven; the folder is there as a whole or not at all."""
    row = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
    head = "<modelVersion>4.0.0</modelVersion><groupId>moldau</groupId><artifactId>x</artifactId><version>1</version>"
    rows = "".join(row.format(*one) for one in artifacts)
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(f"<project>{head}<dependencies>{rows}</dependencies></project>")
        run_maven(
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={scratch}/jars",
            "-DincludeScope=runtime",
        )
        if not into.exists():
            Path(scratch, "jars").rename(into)


def run_maven(*words: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            f"Jars are fetched by Maven, and there is no mvn on PATH: install it, or set {LIBS} to the libs of an "
            "Apache Kafka and install plugins from files."
        )
    try:
        done = subprocess.run([maven, "-q", "-B", *words], capture_output=True, text=True, timeout=FETCH_S)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven has not fetched the jars within {FETCH_S} s.") from None
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unavailable(f"Maven could not fetch the jars: {lines[0] if lines else f'exit {done.returncode}'}")


def host_classes(jars: list[Path]) -> Path:
    """Return the folder of the host's classes; compile them if they are not there."""
    sources = sorted(SOURCES.glob("*.java"))
    text = b"".join(one.read_bytes() for one in sources) + " ".join(one.name for one in jars).encode()
    target = cache() / f"plugin-host-{hashlib.sha256(text).hexdigest()[:12]}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:  # two workers may start at the same time
        command = [program("javac"), "-nowarn", "--release", str(OLDEST), "-cp", os.pathsep.join(map(str, jars))]
        command += ["-d", f"{scratch}/classes", *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S)
        if done.returncode:
            raise Unavailable(f"The host of Java plugins cannot be compiled: {done.stderr.strip()[:500]}")
        try:
            Path(scratch, "classes").rename(target)
        except OSError:
            if not target.exists():
                raise
    return target

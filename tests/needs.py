"""Outside tools that tests need: find them, make those that can be made, and tell what was not run for want of which.

`tests/needs.toml` is the table. As a pytest plugin (loaded by conftest.py) this module skips tests marked
`needs("kcat")` where kcat is missing, and ends the run with a table of what was skipped so. A tool that could not be
made (no network, say) counts as missing, and the table says why.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
KAFKA_VERSION = "4.3.1"
DEBEZIUM_VERSION = "3.6.1.Final"
ICEBERG_VERSION, SINK_VERSION = "1.10.0", "1.10.1"  # of 1.10.0 not all that the sink needs was published
DEBEZIUM_PLUGINS = {"postgres": "3.6.2.Final", "mariadb": "3.5.0.Final", "mysql": "3.6.1.Final"}
MAKE_SECONDS = 600
IMPLIED = {"kafka_libs": "kafka-jars", "spark": "java"}  # a fixture that is itself a need


@dataclass(frozen=True, slots=True)
class Found:
    """A tool's path, or the reason why there is none."""

    tool: str
    path: Path | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    had_by: str
    tests: Sequence[str]
    command: str = ""
    env: str = ""
    made_of: Sequence[str] = ()
    cache: str = ""
    source: str = ""


class MakeFailed(Exception):
    """A tool could not be made; the text is the reason shown in the table."""


@functools.cache
def table() -> dict[str, Tool]:
    rows = tomllib.loads((ROOT / "tests" / "needs.toml").read_text())
    return {name: Tool(name, **row) for name, row in rows.items()}


@functools.cache
def find(name: str) -> Found:
    """Look for a tool once per process: its variable, PATH and .venv, then the cache, which is filled if it can be."""
    tool = table()[name]
    if tool.env and (named := os.environ.get(tool.env)):
        path = Path(named).resolve()
        return Found(name, path) if path.exists() else Found(name, reason=f"{tool.env}={named} does not exist")
    if tool.command:
        path = shutil.which(tool.command) or shutil.which(tool.command, path=os.path.dirname(sys.executable))
        return Found(name, Path(path)) if path else Found(name, reason="not on PATH")
    if tool.made_of:
        return _made(tool)
    return Found(name, reason=f"{tool.env} is not set")


def find_all() -> None:
    """Look for every tool that a whole run needs, which makes those that can be made, with what they are made of."""
    for name, tool in table().items():
        if any(Path(file).name.startswith("test_") for file in tool.tests):
            find(name)


def missing(names: Iterable[str]) -> Found | None:
    return next((found for found in map(find, names) if found.path is None), None)


def _made(tool: Tool) -> Found:
    if lacking := missing(tool.made_of):
        return Found(tool.name, reason=f"{lacking.tool}: {lacking.reason}")
    target = CACHE / (tool.cache + _digest(tool.source))
    try:
        with _lock(tool.name):
            if not target.exists():
                scratch = CACHE / f"{tool.cache}.part"
                shutil.rmtree(scratch, ignore_errors=True)
                MAKERS[tool.name](scratch)
                scratch.rename(target)
    except MakeFailed as error:
        return Found(tool.name, reason=str(error))
    return Found(tool.name, target)


def _digest(source: str) -> str:
    """A name for what is made of a folder of ours, so that it is made anew when the folder changes."""
    if not source:
        return ""
    files = sorted(file for file in (ROOT / source).rglob("*") if file.is_file())
    return "-" + hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@contextlib.contextmanager
def _lock(name: str) -> Iterator[None]:
    """One maker at a time: the workers of pytest-xdist ask for the same tool."""
    CACHE.mkdir(exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kafka_jars(into: Path) -> None:
    artifacts = [("org.apache.kafka", name, KAFKA_VERSION) for name in ("kafka_2.13", "kafka-tools", "kafka-streams")]
    _jars("kafka-jars", f"Apache Kafka {KAFKA_VERSION} jars", artifacts, into)


def _streams_jars(into: Path) -> None:
    artifacts = [("org.apache.kafka", "kafka-streams-test-utils", KAFKA_VERSION)]
    artifacts.append(("com.fasterxml.jackson.core", "jackson-databind", "2.21.2"))
    _jars("streams-jars", f"Kafka Streams {KAFKA_VERSION} jars", artifacts, into)


def _connect_jars(into: Path) -> None:
    artifacts = [("org.apache.kafka", name, KAFKA_VERSION) for name in ("connect-runtime", "connect-file")]
    _jars("connect-jars", f"Apache Connect {KAFKA_VERSION} jars", artifacts, into)


def _debezium_jars(into: Path) -> None:
    artifacts = [("io.debezium", "debezium-connect-plugins", DEBEZIUM_VERSION)]
    _jars("debezium-jars", f"Debezium {DEBEZIUM_VERSION} jars", artifacts, into)


def _debezium_plugin(database: str, into: Path) -> None:
    """The plugin as Debezium packs it: its jars and what they need beside Connect's."""
    into.mkdir(parents=True)
    what = f"io.debezium:debezium-connector-{database}:{DEBEZIUM_PLUGINS[database]}:tar.gz:plugin"
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={what}", f"-DoutputDirectory={into}"]
    _run(f"Debezium {DEBEZIUM_PLUGINS[database]}", copy, ROOT, into)
    for packed in into.glob("*.tar.gz"):
        shutil.unpack_archive(packed, into, filter="data")
        packed.unlink()


def _iceberg_jars(into: Path) -> None:
    core = ("org.apache.iceberg", "iceberg-core", ICEBERG_VERSION)
    catalog = (*core, "tests")  # where the servlet of the REST catalog is
    jetty, sqlite = (
        ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.0.22"),
        ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
    )
    _jars("iceberg-jars", f"Apache Iceberg {ICEBERG_VERSION} jars", [core, catalog, jetty, sqlite], into)


def _iceberg_sink_jars(into: Path) -> None:
    """A folder for plugin.path: Iceberg's own sink, and Hadoop, with which it writes files."""
    sink, parquet = (
        ("org.apache.iceberg", name, SINK_VERSION) for name in ("iceberg-kafka-connect", "iceberg-parquet")
    )
    hadoop = ("org.apache.hadoop", "hadoop-client-runtime", "3.4.1")
    _jars("iceberg-sink-jars", f"Apache Iceberg {SINK_VERSION} sink jars", [sink, parquet, hadoop], into / "sink")


def hadoop_jars() -> list[str]:
    """Those that Spark brings along."""
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise MakeFailed("Spark is not installed")
    return [str(one) for one in Path(spark.origin).parent.glob("jars/hadoop-client-*.jar")]


def _jars(name: str, what: str, artifacts: Sequence[tuple[str, ...]], into: Path) -> None:
    """These artifacts (group, name, version, or with a classifier) and all that they need, by Maven."""
    into.mkdir(parents=True)
    names = ("groupId", "artifactId", "version", "classifier")
    head = (
        "<modelVersion>4.0.0</modelVersion><groupId>moldau</groupId><artifactId>jars</artifactId><version>1</version>"
    )
    rows = ""
    for artifact in [*artifacts, ("org.slf4j", "slf4j-simple", "1.7.36")]:
        parts = (f"<{part}>{value}</{part}>" for part, value in zip(names, artifact, strict=False))
        rows += f"<dependency>{''.join(parts)}</dependency>"
    pom = CACHE / f"{name}.xml"
    pom.write_text(f"<project>{head}<dependencies>{rows}</dependencies></project>")
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={into}", "-DincludeScope=runtime"]
    _run(what, ["mvn", "-q", "-B", "-f", str(pom), *goal], ROOT, into)


def _classes(name: str, what: str, jars: str, into: Path, more: Callable[[], Sequence[str]] = tuple) -> None:
    """What javac makes of a folder of ours, with a tool that is a folder of jars, and more of them."""
    into.mkdir(parents=True)
    sources = sorted(str(file) for file in (ROOT / table()[name].source).glob("*.java"))
    path = ":".join([f"{find(jars).path}/*", *more()])
    _run(what, ["javac", "-nowarn", "-cp", path, "-d", str(into), *sources], ROOT, into)


def _sample_plugin(into: Path) -> None:
    """A folder for plugin.path, with one plugin in it."""
    _classes("sample-plugin", "the sample plugin of Connect", "kafka-jars", into / "sample")


def _go(name: str, into: Path) -> None:
    into.mkdir(parents=True)
    _run(f"the program {name}", ["go", "build", "-o", str(into / name), "."], ROOT / table()[name].source, into)


def _cargo(name: str, into: Path) -> None:
    """What is made on the way is hundreds of megabytes. It stays if cargo is ended, which goes on from there then."""
    shutil.copytree(ROOT / table()[name].source, into)  # cargo writes beside its sources
    on_the_way = CACHE / f"{name}.target"
    where = ["--path", str(into), "--root", str(into), "--target-dir", str(on_the_way)]
    _run(f"the program {name}", ["cargo", "install", "--quiet", "--debug", *where], ROOT, into)
    shutil.rmtree(on_the_way)


def _gssapi(into: Path) -> None:
    """Outside of the environment, which is the same whether Kerberos is installed or not."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(into), "gssapi>=1.8"]
    _run("gssapi", command, ROOT, into)


def _npm(name: str, into: Path) -> None:
    shutil.copytree(ROOT / table()[name].source, into)
    _run(name, ["npm", "ci", "--no-audit", "--no-fund"], into, into)


MAKERS: dict[str, Callable[[Path], None]] = {
    "kafka-jars": _kafka_jars,
    "connect-jars": _connect_jars,
    "debezium-jars": _debezium_jars,
    "streams-jars": _streams_jars,
    "streams-judge": functools.partial(_classes, "streams-judge", "the judge of streams", "streams-jars"),
    "connect-judge": functools.partial(_classes, "connect-judge", "the judge of Connect", "kafka-jars"),
    "sample-plugin": _sample_plugin,
    "debezium-postgres-jars": functools.partial(_debezium_plugin, "postgres"),
    "debezium-mariadb-jars": functools.partial(_debezium_plugin, "mariadb"),
    "debezium-mysql-jars": functools.partial(_debezium_plugin, "mysql"),
    "debezium-host": functools.partial(_classes, "debezium-host", "the host of Debezium", "connect-jars"),
    "iceberg-jars": _iceberg_jars,
    "iceberg-sink-jars": _iceberg_sink_jars,
    "iceberg-rest": functools.partial(_classes, "iceberg-rest", "Iceberg's catalog", "iceberg-jars", more=hadoop_jars),
    "kadm": functools.partial(_go, "kadm"),
    "ksqldb-go": functools.partial(_go, "ksqldb-go"),
    "ksqldb-rust": functools.partial(_cargo, "ksqldb-rust"),
    "gssapi": _gssapi,
    "kafkajs": functools.partial(_npm, "kafkajs"),
    "ksqldb-clients": functools.partial(_npm, "ksqldb-clients"),
}


def _run(what: str, command: list[str], cwd: Path, into: Path) -> None:
    """Run a maker with a progress line on stderr; its first words are the reason if it fails."""
    began = time.monotonic()
    with open(CACHE / f"{Path(command[0]).name}.log", "w+") as log:
        process = subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while (code := process.poll()) is None:
            seconds = int(time.monotonic() - began)
            if seconds > MAKE_SECONDS:
                process.kill()
            _progress(f"fetching {what}: {_megabytes(into):.0f} MB, {seconds} s", seconds)
            time.sleep(1)
        _progress("", 1)
        log.seek(0)
        words = [line.strip() for line in log if line.strip()]
    if code:
        raise MakeFailed(f"{command[0]} failed: {words[0] if words else f'exit {code}'}"[:200])


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _progress(line: str, seconds: int) -> None:
    """One line that changes on a terminal; elsewhere (CI) a line every ten seconds."""
    stream = sys.__stderr__
    if stream and stream.isatty():
        print(f"\r\x1b[K{line}", end="", file=stream, flush=True)
    elif seconds % 10 == 0:
        print(line, file=stream, flush=True)


# The plugin.


def pytest_sessionstart(session: pytest.Session) -> None:
    """A whole run makes what can be made before the workers start, where the progress line is seen."""
    config = session.config
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    if whole and not hasattr(config, "workerinput") and not config.option.collectonly:
        with _uncaptured(config):
            find_all()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    names = [name for mark in item.iter_markers("needs") for name in mark.args]
    names += [tool for fixture, tool in IMPLIED.items() if fixture in getattr(item, "fixturenames", ())]
    with _uncaptured(item.config):
        lacking = missing(names)
    if lacking:
        item.user_properties.append(("needs", [lacking.tool, lacking.reason]))
        pytest.skip(f"needs {lacking.tool}: {lacking.reason}")


@contextlib.contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of what was not run here. The rows travel in the reports, so xdist's controller has them too."""
    skipped: dict[tuple[str, str], list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        for name, value in report.user_properties:
            if name == "needs":
                skipped.setdefault((value[0], value[1]), []).append(report.nodeid.split("::")[0])
    if not skipped:
        return
    terminalreporter.section("not run here, for want of a tool")
    for (tool, reason), files in sorted(skipped.items()):
        where = ", ".join(sorted(set(files)))
        terminalreporter.write_line(f"{tool:18} {len(files):4} tests  {where}  ({reason})")
        terminalreporter.write_line(f"{'':18} to have it: {table()[tool].had_by}")


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """Folder with the jars of Apache Kafka; a test that takes this fixture needs kafka-jars without saying so."""
    found = find("kafka-jars")
    assert found.path is not None, found.reason
    return found.path


if __name__ == "__main__":
    find_all()

"""Debezium's task in a JVM of its own, and the records of ours in the form in which its host prints them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.connect.converters import make_converter
from moldau.connect.data import Record
from tests import needs

FLAGS = (
    "-XX:+UseSerialGC",
    "-Xmx400m",
    "-Duser.timezone=UTC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


@contextmanager
def debezium(database: str, config: Mapping[str, str]) -> Iterator[list[Any]]:
    """Run Debezium's task for a database ("postgres", "mariadb" or "mysql"); the list grows by its records."""
    parts = [needs.find(name) for name in ("debezium-host", "connect-jars", f"debezium-{database}-jars")]
    if lacking := [one for one in parts if one.path is None]:
        sys.exit(f"Debezium cannot be run: {lacking[0].tool}: {lacking[0].reason}")
    host, connect, plugin = (one.path for one in parts)
    path = f"{host}:{connect}/*:{plugin}/debezium-connector-{database}/*"
    found: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        history = {} if database == "postgres" else {"schema.history.internal.file.filename": f"{folder}/history"}
        file.write_text("\n".join(f"{name}={value}" for name, value in {**config, **history}.items()))
        command = ["java", *FLAGS, "-cp", path, "Host", config["connector.class"] + "Task", str(file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            lines = process.stdout

            def follow() -> None:
                for line in lines:
                    if line.startswith("{"):
                        found.append(json.loads(line))

            threading.Thread(target=follow, daemon=True).start()
            try:
                yield found
            finally:
                process.kill()


def as_json(one: Record) -> dict[str, Any]:
    """A record of ours as the host writes one."""
    keys, values = (make_converter("JsonConverter", kind, {}) for kind in ("key", "value"))

    def text(data: bytes | None) -> Any:
        return None if data is None else json.loads(data)

    headers = {each.name: text(values.write("", each.schema, each.value)) for each in one.headers}
    key = text(keys.write(one.topic, one.key_schema, one.key))
    return {"topic": one.topic, "key": key, "value": text(values.write(one.topic, one.value_schema, one.value))} | {
        "headers": headers
    }

"""A process of Apache Iceberg's REST catalog, over tables in a folder."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from moldau.testing import eventually
from moldau.testing.ports import free_port
from tests import needs

START_S = 60.0


class RestCatalog:
    """A catalog that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, free_port()
        self.url = f"http://127.0.0.1:{port}"
        server, jars = (needs.find(name).path for name in ("iceberg-rest", "iceberg-jars"))
        path = ":".join([str(server), f"{jars}/*", *needs.hadoop_jars()])
        places = (str(port), f"{folder}/catalog.db", f"file://{folder}/warehouse")
        self._command = ["java", "-XX:+UseSerialGC", "-Xmx200m", "-cp", path, "RestServer", *places]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._is_there, START_S)

    def _is_there(self) -> bool:
        assert self._process is not None and self._process.poll() is None, f"{self._command} ended"
        try:
            with urllib.request.urlopen(f"{self.url}/v1/config", timeout=5) as answer:
                return answer.status == 200
        except URLError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_S)


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    found = RestCatalog(folder)
    try:
        found.start()
        yield found
    finally:
        found.kill()

"""A process of Apache Iceberg's REST catalog, over tables in a folder."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from moldau.testing.ports import free_port
from tests import needs
from tests.connect.systems import Killable


class RestCatalog(Killable):
    """A catalog whose tables stay when it is killed."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        server, jars = (needs.find(name).path for name in ("iceberg-rest", "iceberg-jars"))
        path = ":".join([str(server), f"{jars}/*", *needs.hadoop_jars()])
        places = (str(port), f"{folder}/catalog.db", f"file://{folder}/warehouse")
        super().__init__(["java", "-XX:+UseSerialGC", "-Xmx200m", "-cp", path, "RestServer", *places])

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/config", timeout=5) as answer:
                return answer.status == 200
        except URLError:
            return False


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    found = RestCatalog(folder)
    try:
        found.start()
        yield found
    finally:
        found.kill()

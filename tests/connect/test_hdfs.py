"""The sink of files against HDFS itself: a name node and a data node in one Java process."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.connect.connector import SinkContext
from moldau.connect.connectors import files_sink, spool_dir
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, RetriableError
from moldau.connect.shapes import Shape
from moldau.testing.ports import free_port
from tests.connect.test_files import avro_rows

SOURCE = Path(__file__).parent / "hdfs" / "MiniHdfs.java"


@pytest.fixture(scope="module")
def name_node() -> Iterator[str]:
    pyspark = pytest.importorskip("pyspark")
    port = free_port()
    libs = f"{os.environ['HADOOP_MINICLUSTER']}:{Path(pyspark.__file__).parent / 'jars'}/*"
    with tempfile.TemporaryDirectory(prefix="moldau-hdfs-") as folder:
        command = ["java", "-Xmx384m", "-cp", libs, str(SOURCE), folder, str(port)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert server.stdout is not None
            assert any(line.strip() == b"ready" for line in server.stdout), "HDFS did not start"
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()
            server.communicate()


def opened(place: str, **config: Any) -> Any:
    given = {"hdfs.url": f"webhdfs://{place}", "hdfs.user": "moldau", "flush.size": "2", "topics.dir": "a b"}
    given |= {key.replace("_", "."): str(value) for key, value in config.items()}
    [task] = files_sink.HDFS.task_configs(given, 1)
    return files_sink.HDFS.open(SinkContext(task, lambda *_: None, lambda _: False))


def records() -> list[Record]:
    shape = Shape()
    made = [shape.take({"n": n, "t": "ä"}) for n in range(5)]
    return [Record("t", 0, None, None, schema, value, 0, offset=n) for n, (schema, value) in enumerate(made)]


@pytest.mark.needs("hadoop")
@pytest.mark.parametrize(
    ("kind", "read"), [("AvroFormat", avro_rows), ("ParquetFormat", spool_dir.parquet), ("JsonFormat", None)]
)
def test_files_are_there_once(name_node: str, kind: str, read: Any) -> None:
    for _ in range(2):  # what was written is written again
        task = opened(name_node, format_class=kind, topics_dir=f"a b/{kind}")
        task.put(records())
        assert task.flush({("t", 0): 5}) == {("t", 0): 4}
        task.close()
    base = f"http://{name_node}/webhdfs/v1/a%20b/{kind}/t/partition=0"
    listed = httpx.get(f"{base}?op=LISTSTATUS", trust_env=False).json()["FileStatuses"]["FileStatus"]
    extension = {"AvroFormat": "avro", "ParquetFormat": "parquet", "JsonFormat": "json"}[kind]
    names = [one["pathSuffix"] for one in listed]
    assert names == [f"t+0+000000000{at}.{extension}" for at in (0, 2)]
    content = [
        httpx.get(f"{base}/{name}?op=OPEN", trust_env=False, follow_redirects=True).content
        for name in (one.replace("+", "%2B") for one in names)
    ]
    rows = [row for one in content for row in (read or spool_dir.documents)(io.BytesIO(one), {"file.charset": "utf-8"})]
    assert rows == [{"n": n, "t": "ä"} for n in range(4)]


def test_a_name_node_that_is_away_is_waited_for() -> None:
    task = opened(f"127.0.0.1:{free_port()}", format_class="JsonFormat")
    with pytest.raises(RetriableError):
        task.put(records())
    with pytest.raises(ConfigError, match="webhdfs://"):
        opened("", hdfs_url="hdfs://x", format_class="JsonFormat")

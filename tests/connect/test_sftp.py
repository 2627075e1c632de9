"""The SFTP connectors, against OpenSSH's server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.config_def import Password
from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.files_sink import SFTP
from moldau.connect.connectors.sftp import private_key
from moldau.connect.connectors.spool_dir import SFTP_CSV, SFTP_LINES
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import plain
from moldau.testing.ports import free_port
from tests.connect.systems import sshd

paramiko = pytest.importorskip("paramiko")
needs_sshd = pytest.mark.needs("sshd")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


def reading(connector: Any, server: dict[str, str], folder: Path, stored: Any = None, **config: str) -> Any:
    given = {"topic": "t", "input.path": str(folder), "input.file.pattern": ".*\\.csv", "empty.poll.wait.ms": "1"}
    given |= {"finished.path": str(folder / "done"), **server}
    [task] = connector.task_configs({**given, **{key.replace("_", "."): value for key, value in config.items()}}, 1)
    return connector.open(SourceContext(task, lambda _: stored, lambda _: False))


@needs_sshd
def test_files_of_a_server_become_records_and_are_moved(server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "a.csv").write_text("n,w\n1,x\n2,y\n")
    (tmp_path / "b.txt").write_text("not ours")
    task = reading(SFTP_CSV, server, tmp_path, csv_first_row_as_header="true")
    records = [one for _ in range(3) for one in task.poll()]
    assert [plain(one.value_schema, one.value) for one in records] == [{"n": "1", "w": "x"}, {"n": "2", "w": "y"}]
    assert records[1].source_offset == {"offset": 2} and records[1].source_partition["fileName"] == "a.csv"  # type: ignore[index]
    assert (tmp_path / "a.csv").exists()  # until it is committed
    task.committed()
    assert not (tmp_path / "a.csv").exists() and (tmp_path / "done" / "a.csv").exists()
    task.close()


@needs_sshd
def test_the_rest_of_a_file_is_read_after_a_restart(server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n2\n3\n")
    task = reading(SFTP_LINES, server, tmp_path, {"offset": 2}, cleanup_policy="DELETE")
    assert [one.value for _ in range(3) for one in task.poll()] == ["3"]
    task.committed()
    assert list(tmp_path.iterdir()) == []
    task.close()


@needs_sshd
def test_records_become_files_of_a_server(server: dict[str, str], tmp_path: Path) -> None:
    config = {**server, "sftp.working.dir": str(tmp_path), "format.class": "JsonFormat", "flush.size": "2"}
    [given] = SFTP.task_configs(config, 1)
    for _ in range(2):  # a repeated file replaces the first
        task = SFTP.open(SinkContext(given, lambda *_: None, lambda _: False))
        task.put([Record("t", 0, None, None, STRING, f"v{n}", 0, offset=n) for n in range(3)])
        assert task.flush({("t", 0): 3}) == {("t", 0): 2}
        task.close()
    files = {str(one.relative_to(tmp_path)): one.read_text() for one in tmp_path.rglob("*") if one.is_file()}
    assert files == {"topics/t/partition=0/t+0+0000000000.json": '"v0"\n"v1"\n'}


@needs_sshd
def test_a_server_that_is_not_known_is_not_trusted(server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    strange = reading(SFTP_LINES, {**server, "sftp.known.hosts.file": str(tmp_path / "none")}, tmp_path)
    with pytest.raises((ConnectError, RetriableError), match=r"known_hosts|not found"):
        strange.poll()
    wrong = reading(SFTP_LINES, {**server, "sftp.username": "nobody-here"}, tmp_path)
    with pytest.raises(ConnectError, match="trust each other"):
        wrong.poll()
    gone = reading(SFTP_LINES, {**server, "sftp.port": str(free_port())}, tmp_path)
    with pytest.raises(RetriableError):
        gone.poll()
    for task in (strange, wrong, gone):
        task.close()


def test_settings_are_checked() -> None:
    wrong = {"tls.private.key": Password(json.dumps({})), "tls.passphrase": None}
    with pytest.raises(ConfigError, match="not a private key"):
        private_key(paramiko, wrong)
    with pytest.raises(ConfigError, match=r"finished\.path"):
        SFTP_CSV.task_configs(
            {"sftp.host": "h", "sftp.username": "u", "topic": "t", "input.path": "/", "input.file.pattern": "x"}, 1
        )

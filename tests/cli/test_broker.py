"""`moldau broker` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.broker.rim.process import Options
from moldau.cli import broker as command
from moldau.cli.quick_broker import parse
from moldau.testing import eventually

MOLDAU = [sys.executable, "-m", "moldau", "broker"]
ANY_PORT = ["--listen", "127.0.0.1:0"]


@contextmanager
def started(*arguments: str, **options: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running broker and the line it printed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*MOLDAU, *arguments], **pipes | options)  # type: ignore[call-overload]
    try:
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors


def refused(*arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a broker that does not start."""
    result = subprocess.run([*MOLDAU, *arguments], capture_output=True, text=True, timeout=60)
    assert result.stdout == ""
    return result.returncode, result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_line_and_stops_cleanly(tmp_path: Path, number: int) -> None:
    with started(*ANY_PORT, "--data-dir", str(tmp_path / "new" / "data")) as (process, line):
        word, address = line.split()
        assert word == "ready"
        host, _, port = address.partition(":")
        socket.create_connection((host, int(port)), 10).close()
        code, out, errors = end(process, number)
        assert (code, out) == (0, "")
        assert "stopped" in errors.splitlines()[-1]
        assert (tmp_path / "new" / "data" / "meta.properties").exists()


def test_an_ephemeral_broker_leaves_nothing(tmp_path: Path) -> None:
    place = {"env": os.environ | {"TMPDIR": str(tmp_path)}}
    with started(*ANY_PORT, "--ephemeral", **place) as (process, _):
        assert len(list(tmp_path.iterdir())) == 1
        assert end(process)[0] == 0
    assert not list(tmp_path.iterdir())


def test_logs_can_be_json(tmp_path: Path) -> None:
    with started(*ANY_PORT, "--ephemeral", "--log-format", "json") as (process, _):
        lines = [json.loads(line) for line in end(process)[2].splitlines()]
    assert [line["message"] for line in lines] == ["ready", "stopping", "stopped"]


def test_a_file_and_settings_are_taken_the_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'file'}\nlisteners=PLAINTEXT://127.0.0.1:1\nunknown.thing=1\n")
    arguments = ("--config", str(file), *ANY_PORT, "--set", f"log.dirs={tmp_path / 'set'}")
    with started(*arguments) as (process, line):
        assert line.startswith("ready 127.0.0.1:")
        assert "unknown.thing" in end(process)[2]
    assert (tmp_path / "set" / "meta.properties").exists()
    assert not (tmp_path / "file").exists()


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with started(*ANY_PORT, "--data-dir", str(tmp_path)):
        code, errors = refused(*ANY_PORT, "--data-dir", str(tmp_path))
    assert code == 1
    assert len(errors.splitlines()) == 1
    assert str(tmp_path) in errors


MISTAKES = {
    "a setting that cannot be": (["--set", "num.partitions=none"], 2, "num.partitions"),
    "a setting without a value": (["--set", "num.partitions"], 2, "key=value"),
    "no such file": (["--config", "/no/such/file"], 2, "/no/such/file"),
    "no address": (["--listen", "here"], 2, "HOST:PORT"),
    "two places": (["--ephemeral", "--data-dir", "x"], 2, "--data-dir"),
    "an unknown host": (["--listen", "no.such.host.invalid:0"], 1, "host is unknown"),
    "TLS": (["--set", "listeners=SSL://127.0.0.1:0"], 2, "TLS needs a key and its certificate"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line(name: str, tmp_path: Path) -> None:
    arguments, expected, text = MISTAKES[name]
    place = [] if "--ephemeral" in arguments else ["--data-dir", str(tmp_path)]
    code, errors = refused(*arguments, *place)
    assert code == expected, errors
    assert len(errors.splitlines()) == 1, errors
    assert text in errors


def test_a_taken_port_gets_one_line_and_touches_no_data(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code, errors = refused("--listen", address, "--data-dir", str(tmp_path / "data"))
    assert (code, len(errors.splitlines())) == (1, 1)
    assert "the port is taken" in errors
    assert not (tmp_path / "data").exists()


def test_a_taken_metrics_port_gets_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, errors = refused(*ANY_PORT, "--ephemeral", "--metrics-port", str(other.getsockname()[1]))
    assert (code, len(errors.splitlines())) == (1, 1), errors


def test_help_has_examples() -> None:
    result = subprocess.run([*MOLDAU, "--help"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert "Examples" in result.stdout
    assert "--metrics-port" in result.stdout


def test_an_unknown_option_is_told() -> None:
    code, errors = refused("--listn", "127.0.0.1:0")
    assert code == 2
    assert "--listn" in errors


ARGUMENTS = [
    [],
    ["--ephemeral", "--listen", "127.0.0.1:0"],
    ["--listen=[::1]:0", "--set", "a=b=c", "--set=d=e", "--log-level", "debug"],
    ["--config", "f", "--data-dir", "d", "--metrics-port", "9400", "--log-format", "json", "--stop-with-stdin"],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_the_quick_way_understands_what_typer_does(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Options] = []
    monkeypatch.setattr(command, "run", lambda options: seen.append(options) or 0)
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert parse(arguments) == seen[0]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["x"], ["--set"], ["--metrics-port", "x"], ["--log-level", "loud"], ["--ephemeral=1"]]
)
def test_the_quick_way_leaves_the_rest_to_typer(arguments: list[str]) -> None:
    assert parse(arguments) is None


def test_a_second_signal_forces_the_end(tmp_path: Path) -> None:
    with started(*ANY_PORT, "--ephemeral") as (process, line):
        host, _, port = line.split()[1].partition(":")
        with socket.create_connection((host, int(port)), 10) as sock:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            eventually(lambda: process.poll() is not None, what="the end")
            assert sock.recv(1) == b""

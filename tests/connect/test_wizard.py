"""The wizard of `moldau connector create`: a conversation with a real worker."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from moldau.admin.connector_wizard import Question, converse, text_of
from moldau.admin.connectors import ask
from tests.connect.running import Running
from tests.services import unique


class Talk:
    """Answers in order, and what was shown before each."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked, self.told = list(answers), list[str](), list[str]()

    def prompt(self, question: str, is_secret: bool) -> str:
        self.asked.append(question)
        assert self.answers, f"no answer is left for {question}"
        return self.answers.pop(0)

    def with_worker(self, connect: Running) -> dict[str, str]:
        return converse(lambda *words: ask(connect.url, *words), self.prompt, self.told.append)


def test_required_settings_are_asked_until_they_are_right(connect: Running) -> None:
    name = unique("asked")
    talk = Talk("FileStremSource", "FileStreamSource", "", name, "t", "batch.size=many", "7", "tasks.max=2", "")
    config = talk.with_worker(connect)
    assert config == {
        "name": name,
        "connector.class": "FileStreamSourceConnector",
        "topic": "t",
        "batch.size": "7",
        "tasks.max": "2",
    }
    assert "There is no connector FileStremSource. Did you mean FileStreamSource?" in talk.told
    assert "A connector needs a name." in talk.told
    assert any("batch.size" in line and "INT" in line for line in talk.told)
    assert talk.asked[4].startswith("topic: ")
    assert talk.asked[6].startswith("batch.size: ") and "default 2000" in talk.asked[6]


def test_settings_that_a_java_connector_does_not_look_at_are_not_asked_for() -> None:
    """Its answer has no values for them; Debezium's jars have such."""
    said = {"/connector-plugins": [{"class": "a.JavaConnector"}], "/connectors": []}
    rows = {"configs": [{"definition": {"name": "left.out", "required": True}, "value": None}]}
    talk = Talk("JavaConnector", "it", "?", "left.out=1", "")
    config = converse(lambda _, path, *body: said.get(path, rows), talk.prompt, talk.told.append)
    assert config == {"name": "it", "connector.class": "JavaConnector", "left.out": "1"}


def test_a_name_that_is_taken_is_asked_again_and_settings_are_listed(connect: Running, tmp_path: Path) -> None:
    name = unique("taken")
    connect.create(name, connector_class="FileStreamSink", file=tmp_path / "x", topics="t")
    numbers = [one["class"].rpartition(".")[2] for one in connect.http.get("/connector-plugins").json()]
    sink = str(numbers.index("FileStreamSinkConnector") + 1)
    talk = Talk(sink, name, f"{name}-2", "t", "?", "file=/tmp/x", "file=", "nonsense", "")
    config = talk.with_worker(connect)
    assert config == {"name": f"{name}-2", "connector.class": "FileStreamSinkConnector", "topics": "t"}
    assert f"There is a connector {name} already." in talk.told
    assert any(line.startswith("errors.tolerance: ") for line in talk.told)
    assert "'nonsense' is not written as name=value." in talk.told
    connect.http.delete(f"/connectors/{name}")


def test_a_question_says_what_may_be_answered() -> None:
    one = Question("mode", "How to read.", "bulk", ("bulk", "timestamp"), (), False)
    assert text_of(one) == "mode: How to read. (one of bulk, timestamp; default bulk)"


def test_the_command_asks_on_a_terminal(connect: Running, tmp_path: Path) -> None:
    name = unique("terminal")
    command = [sys.executable, "-m", "moldau", "connector", "create", "--url", connect.url, "--stopped"]
    main, worker = pty.openpty()
    answers = ["FileStreamSource", name, "t", f"file={tmp_path / 'in'}", "", "y"]
    os.write(main, "".join(f"{answer}\n" for answer in answers).encode())
    process = subprocess.Popen(command, stdin=worker, stdout=worker, stderr=worker)
    os.close(worker)
    shown = b""
    with suppress(OSError):  # the end of the terminal
        while part := os.read(main, 4096):
            shown += part
    os.close(main)
    assert process.wait(300) == 0, shown.decode()
    found: Any = connect.http.get(f"/connectors/{name}/config").json()
    assert found["file"] == str(tmp_path / "in") and found["topic"] == "t"
    connect.http.delete(f"/connectors/{name}")
    refused = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert refused.returncode != 0 and "Name a file" in refused.stderr


@pytest.mark.parametrize("answers", [("FileStreamSource",) + ("",) * 1000])
def test_a_conversation_ends(connect: Running, answers: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="No name"):
        Talk(*answers).with_worker(connect)

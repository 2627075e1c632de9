"""The shell on a server: commands, statements, rows, refusals, flags and the prompt itself."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from moldau.cli import ksql as tools
from moldau.cli.ksql.terminal import CatalogueCompleter, Colours, converse
from moldau.sql.shell.remote import RemoteError, Server
from moldau.sql.shell.shell import Options, Shell
from moldau.testing.sql import Ksql

STREAM = """CREATE STREAM shell_pay (card STRING KEY, amount INT)
    WITH (kafka_topic='shell-pay', value_format='JSON', partitions=1);"""


@pytest.fixture(scope="module")
def pay(ksql: Ksql) -> Ksql:
    ksql.execute(STREAM)
    for amount in (1, 20, 300):
        ksql.execute(f"INSERT INTO shell_pay VALUES ('visa', {amount});")
    return ksql


class Written:
    """A shell whose lines are kept."""

    def __init__(self, url: str, **options: Any) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.shell = Shell(Server(url, trust_env=False), self.write, Options(**options))
        self.shell.scope.properties["auto.offset.reset"] = "earliest"

    def write(self, line: str, meaning: str) -> None:
        (self.errors if meaning == "error" else self.lines).append(line)

    def __call__(self, text: str) -> list[str]:
        self.lines.clear()
        self.errors.clear()
        self.done = self.shell.run(text)
        return list(self.lines)


@pytest.fixture
def shell(pay: Ksql) -> Iterator[Written]:
    made = Written(pay.url)
    yield made
    made.shell.close()


def test_statement_is_answered_with_a_table(shell: Written) -> None:
    assert any(line.startswith(" SHELL_PAY") and "shell-pay" in line for line in shell("SHOW STREAMS;"))
    assert shell("DESCRIBE shell_pay;")[0] == "Name                 : SHELL_PAY"
    assert any(line.startswith(" CARD   | VARCHAR(STRING)  (key)") for line in shell.lines)
    assert shell("CREATE TYPE shell_type AS INT; DROP TYPE shell_type;")[0].startswith(" Message")


def test_rows_come_in_a_grid(shell: Written) -> None:
    rows = shell("SELECT amount FROM shell_pay EMIT CHANGES LIMIT 2;")
    assert [line.strip("| ") for line in rows[3:5]] == ["1", "20"]
    assert rows[0].startswith("+---") and rows[-2:] == ["Limit Reached", "Query terminated"]


def test_row_limit_and_time_limit_end_a_query(pay: Ksql) -> None:
    few = Written(pay.url, row_limit=1, output="JSON")
    few.shell.scope.properties["auto.offset.reset"] = "earliest"
    parts = [json.loads(line) for line in few("SELECT amount FROM shell_pay EMIT CHANGES;")]
    assert [part["row"]["columns"] for part in parts if "row" in part] == [[1]]
    brief = Written(pay.url, limit_s=0.3)
    brief.shell.scope.properties["auto.offset.reset"] = "latest"
    assert brief("SELECT amount FROM shell_pay EMIT CHANGES;")[-1] == "Query terminated" and brief.done


def test_ctrl_c_ends_the_query_and_not_the_shell(shell: Written) -> None:
    def interrupt(line: str, meaning: str) -> None:
        if line.startswith("|20 "):
            raise KeyboardInterrupt
        shell.write(line, meaning)

    shell.shell.write = interrupt
    assert shell("SELECT amount FROM shell_pay EMIT CHANGES;")[-1] == "Query terminated" and shell.done
    assert shell("SHOW TYPES;")[0].startswith(" Type Name")


def test_rows_are_shown_while_the_query_runs(pay: Ksql, shell: Written) -> None:
    pay.execute("CREATE STREAM shell_live (v INT) WITH (kafka_topic='shell-live', value_format='JSON', partitions=1);")
    running = threading.Thread(target=shell, args=("SELECT v FROM shell_live EMIT CHANGES LIMIT 2;",))
    running.start()
    for number in (1, 2):
        pay.execute(f"INSERT INTO shell_live VALUES ({number});")
        deadline = time.monotonic() + 120
        while not any(line.startswith(f"|{number} ") for line in list(shell.lines)):
            assert time.monotonic() < deadline, shell.lines
            time.sleep(0.01)
    running.join(120)
    assert shell.done


def test_refusal_is_underlined_and_proposes_a_name(shell: Written) -> None:
    assert shell("SELECT amont FROM shell_pay EMIT CHANGES;") == [
        "SELECT amont FROM shell_pay EMIT CHANGES",
        "       ^^^^^",
        "Did you mean AMOUNT?",
    ]
    assert not shell.done and "AMONT" in shell.errors[0]
    assert shell("CREATE STREM x;") == ["CREATE STREM x", "       ^^^^^"]
    assert shell("DESCRIBE shell_pai;")[-1] == "Did you mean SHELL_PAY?"


def test_text_stops_at_what_fails(shell: Written) -> None:
    assert shell("SHOW TYPES; DESCRIBE nothing; SHOW STREAMS;")[0].startswith(" Type Name")
    assert not shell.done and not any("SHELL_PAY" in line for line in shell.lines)
    shell("SHOW STREAMS")
    assert shell.errors == ["The statement does not end with a semicolon: SHOW STREAMS"]


def test_properties_and_variables_go_along(shell: Written) -> None:
    assert shell("SET 'auto.offset.reset' = 'latest';") == [
        "Successfully changed local property 'auto.offset.reset' to 'latest'. "
        "Use the UNSET command to revert your change."
    ]
    assert shell("UNSET 'auto.offset.reset';")[0].endswith("(value was 'latest').")
    shell("UNSET 'auto.offset.reset';")
    assert "never set" in shell.errors[0]
    shell("SET 'nonsense' = '1';")
    assert "Not recognizable" in shell.errors[0]
    assert any("SHELL_PAY" in line for line in shell("DEFINE source = 'shell_pay'; DESCRIBE ${source};"))
    assert any(line.lower().split() == ["source", "|", "shell_pay"] for line in shell("SHOW VARIABLES;"))
    shell("UNDEFINE source; DESCRIBE ${source};")
    assert not shell.done


def test_commands_of_the_shell(shell: Written, pay: Ksql, tmp_path: Path) -> None:
    assert any(line.strip().startswith("run script FILE") for line in shell("help"))
    assert shell("output json") == ["Output format set to JSON"]
    assert json.loads("\n".join(shell("SHOW TYPES;")))["@type"] == "type_list"
    assert shell("OUTPUT TABULAR;") and shell("output") == ["Current output format: TABULAR"]
    shell("output xml")
    assert "valid formats" in shell.errors[0]
    assert shell("server") == [pay.url] and shell(f"server {pay.url}") == [pay.url]
    shell("server http://127.0.0.1:1")
    assert "does not answer" in shell.errors[0] and shell("server") == [pay.url]
    assert shell("version")[0].startswith("Version: ")
    assert shell("request-pipelining on")[0].endswith("ON") and "request-pipelining: ON" in shell("cli properties")
    shell("SET CLI COLUMN-WIDTH 12; SET CLI WRAP OFF;")
    assert shell("SELECT amount FROM shell_pay EMIT CHANGES LIMIT 1;")[0] == "+------------+"
    assert shell("history")[0] == "   1: help"
    script, spooled = tmp_path / "a.sql", tmp_path / "out.txt"
    script.write_text("SHOW TYPES;\nexit;\nSHOW STREAMS;")
    shell(f"spool '{spooled}'; run script '{script}';")
    assert shell.shell.ended and not any("SHELL_PAY" in line for line in shell.lines)
    shell("spool off")
    assert "ksql> SHOW TYPES;" in spooled.read_text() and "Type Name" in spooled.read_text()
    script.write_text(f"RUN SCRIPT '{script}';")
    shell.shell.ended = False
    shell(f"run script {script}")
    assert any("may run each other" in line for line in shell.errors)
    shell("run script /nowhere.sql")
    assert "Failed to read file" in shell.errors[0]


def test_flags_of_ksql(pay: Ksql, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str]:
        code = tools.run("ksql", [*words, pay.url])
        return code, capsys.readouterr().out

    code, out = run("-e", "DESCRIBE ${s};", "-d", "s=shell_pay", "--output", "json")
    assert code == 0 and json.loads(out)["sourceDescription"]["name"] == "SHELL_PAY"
    file, config = tmp_path / "f.sql", tmp_path / "ksql.properties"
    file.write_text("SELECT amount FROM shell_pay EMIT CHANGES;")
    config.write_text("auto.offset.reset=earliest\n")
    code, out = run("-f", str(file), "--config-file", str(config), "--query-row-limit", "3")
    assert code == 0 and [line.strip("| ") for line in out.splitlines()[3:6]] == ["1", "20", "300"]
    assert run("-e", "DESCRIBE nothing;")[0] == 255
    assert run("-e", "SHOW TYPES;", "-f", str(file))[0] == 255
    assert run("-u", "ada")[0] == 255 and run("-d", "x", "-e", "SHOW TYPES;")[0] == 255
    assert run("--query-timeout", "0")[0] == 255
    assert tools.run("ksql", ["-e", "SHOW TYPES;", "http://127.0.0.1:1"]) == 255
    assert "does not answer" in capsys.readouterr().out


def test_prompt_takes_several_lines_and_completes(pay: Ksql) -> None:
    written = Written(pay.url)
    with create_pipe_input() as keys:
        keys.send_text("describe\rshell_pay;\rshow types;\rexit\r")
        converse(written.shell, input=keys, output=DummyOutput(), history=InMemoryHistory())
    assert written.shell.history == ["describe\nshell_pay", "show types", "exit"] and not written.errors
    completer = CatalogueCompleter(Written(pay.url).shell)
    found = completer.get_completions(Document("SELECT amo FROM shell_pay", 10), CompleteEvent())
    assert [(one.text, one.display_meta_text) for one in found] == [("amount", "INTEGER of SHELL_PAY")]
    coloured = Colours().lex_document(Document("SELECT 'a' -- b"))(0)
    assert [style for style, piece, *_ in coloured if piece.strip()] == ["class:keyword", "class:text", "class:comment"]


def test_server_that_is_not_one_is_told(pay: Ksql) -> None:
    with pytest.raises(RemoteError, match="does not answer"):
        Server("http://127.0.0.1:1").info()
    with pytest.raises(RemoteError, match="404"):
        Server(f"{pay.url}/elsewhere").info()

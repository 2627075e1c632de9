"""What a worker of Apache Connect 4.3.1 answered to a script of requests, asked of ours.

recorded.jsonl has a request a line: method, path, body, status, answer (without documentation, whose words are ours),
and the header Location. What takes a while to be so is asked again until it is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.connect.running import PATIENCE_S, Running

RECORDED = Path(__file__).with_name("recorded.jsonl")
# Where Connect has an exception of Java, or of its web server, for a mistake of the client: our status.
DEVIATIONS = {
    ("PUT", "/connector-plugins/Nope/config/validate"): 400,
    ("PUT", "/connector-plugins/FileStreamSink/config/validate", "{}"): 400,
    ("POST", "/connectors", '{"name": "q"}'): 400,
    ("POST", "/connectors", "foo"): 400,
    ("GET", "/connectors/a%2Fb%20c/status"): 200,
}


def test_a_worker_answers_as_connect_does(connect: Running, tmp_path: Path) -> None:
    file, worker_id = tmp_path / "f.txt", connect.worker.settings.worker_id
    file.write_text("a\nb\n")
    text = RECORDED.read_text().replace("/FILE", str(file)).replace("WORKER", worker_id)
    wrong: list[str] = []
    for line in text.splitlines():
        method, path, body, status, answer, headers = json.loads(line)
        found = play(connect, method, path, body, [status, answer, headers.get("location")])
        wrong += [f"{method} {path} {body or ''}: {one}" for one in found]
    for name in ("fs", "new", "a%2Fb%20c"):
        assert connect.http.delete(f"/connectors/{name}").status_code == 204
    assert not wrong, "\n".join(wrong)


def play(connect: Running, method: str, path: str, body: Any, wanted: list[Any]) -> list[str]:
    """Ask, and return how the answer differs from the wanted one."""

    def ask() -> list[Any]:
        found = connect.http.request(method, path, **({} if body is None else {"json": body}))
        answer = found.json() if found.text and found.headers.get("content-type") == JSON else found.text
        return normal([found.status_code, answer, found.headers.get("location")])

    other = deviation(method, path, body)
    if other is not None:
        return list(differences(ask()[0], other))
    deadline = time.monotonic() + (PATIENCE_S if method == "GET" else 0)
    while (found := list(differences(ask(), normal(wanted)))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def differences(found: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """Yield where two documents differ."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for name in sorted(found.keys() | wanted.keys()):
            yield from differences(found.get(name, ABSENT), wanted.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif found != wanted or type(found) is not type(wanted):
        yield f"{path} is {found!r}, not {wanted!r}"


ABSENT = "(absent)"
JSON = "application/json"


def deviation(method: str, path: str, body: Any) -> int | None:
    for (of_method, of_path, *part), status in DEVIATIONS.items():
        if (method, path) == (of_method, of_path) and all(
            json.dumps(body) == one or (len(one) < 5 and one != "{}" and one in json.dumps(body)) for one in part
        ):
            return status
    return None


def normal(answer: Any) -> Any:
    """Leave out the words of documentation, and orders that come from Java's hashes."""
    if isinstance(answer, dict):
        made = {name: normal(value) for name, value in answer.items() if name != "documentation"}
        if "configs" in made:
            made["configs"] = {row["value"]["name"]: unnumbered(row) for row in made["configs"]}
            made["groups"] = sorted(made["groups"])
        return made
    if isinstance(answer, list):
        rows = [normal(one) for one in answer]
        if rows and all(isinstance(one, dict) and "class" in one for one in rows):
            return [one for one in rows if not one["class"].startswith(OURS)]
        if rows and all(isinstance(one, dict) and "default_value" in one for one in rows):
            return {one["name"]: one for one in rows}
        if all(isinstance(one, str) for one in rows):
            return sorted(one for one in rows if not one.startswith(OURS))
        return rows
    return answer


# plugins that Apache's worker does not have
OURS = ("io.confluent.", "io.debezium.", "moldau.", "com.github.", "com.redis.", "org.apache.iceberg.", "tests.")


def unnumbered(row: Any) -> Any:
    """Settings of one transform are in the order of Java's hashes, and so are their numbers. What Kafka's clients have
    for a default is not known here.
    """
    if ".override." in row["value"]["name"]:
        return {**row, "definition": {**row["definition"], "default_value": None, "importance": None}}
    if row["value"]["name"].startswith("transforms."):
        return {**row, "definition": {**row["definition"], "order_in_group": 0}}
    return row

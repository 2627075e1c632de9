"""What the pages of connectors show, and what they keep to themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.admin.connectors import difference
from moldau.console.model import connectors as model
from moldau.console.model.problems import Refused


def status(state: str, *tasks: str) -> dict[str, Any]:
    rows = [{"id": n, "state": one, "worker_id": "w:1"} for n, one in enumerate(tasks)]
    return {"connector": {"state": state, "worker_id": "w:1"}, "tasks": rows}


def test_what_has_failed_comes_first() -> None:
    info = {"type": "sink", "config": {"connector.class": "org.x.FileStreamSinkConnector"}}
    found = {
        "a": {"status": status("RUNNING", "RUNNING", "RUNNING"), "info": info},
        "b/c": {"status": status("RUNNING", "FAILED"), "info": info},
        "new": {"info": info},
    }
    rows = model.rows(found)
    assert [(row["connector"], row["state"], row["tasks"]) for row in rows] == [
        ("b/c", "FAILED", "1 FAILED"),
        ("a", "RUNNING", "2 RUNNING"),
        ("new", "UNASSIGNED", "–"),
    ]
    assert rows[0]["link"] == "/connectors/b%2Fc" and rows[0]["class"] == "FileStreamSinkConnector"


@pytest.mark.parametrize(
    ("now", "verbs"),
    [
        (status("RUNNING", "RUNNING"), ["pause", "stop", "restart"]),
        (status("RUNNING", "FAILED"), ["stop", "restart"]),
        (status("PAUSED", "PAUSED"), ["resume", "stop"]),
        (status("STOPPED"), ["resume"]),
    ],
)
def test_verbs_are_offered_where_they_make_sense(now: dict[str, Any], verbs: list[str]) -> None:
    assert model.verbs(now) == verbs


def test_secrets_are_hidden_and_kept() -> None:
    definitions = [{"name": "connection.password", "type": "PASSWORD"}, {"name": "token.field", "type": "STRING"}]
    config = {"connection.password": "s3", "producer.override.sasl.jaas.config": "j", "token.field": "f", "n": "1"}
    config["aws.secret.access.key"] = "${file:/x:y}"  # a reference says nothing
    secrets = model.secrets_of(config, definitions)
    assert secrets == {"connection.password", "producer.override.sasl.jaas.config"}
    text = json.dumps(model.shown(config, secrets))
    assert "s3" not in text and '"j"' not in text and '"f"' in text
    assert model.edited(text, config, secrets) == config
    changed = {**json.loads(text), "n": "2", "connection.password": "new"}
    found = model.edited(json.dumps(changed), config, secrets)
    assert found == {**config, "n": "2", "connection.password": "new"}
    assert sorted(difference({"a": "1", "b": "2"}, {"b": "3"})) == ["+ b=3", "- a=1", "- b=2"]
    for wrong in ("{", "[]"):
        with pytest.raises(Refused):
            model.edited(wrong, config, secrets)


def test_traces_and_offsets_are_shown() -> None:
    now = status("RUNNING", "FAILED", "RUNNING")
    now["tasks"][0]["trace"] = "x.Error: no"
    assert model.traces(now) == [("task 0", "x.Error: no")]
    assert model.offset_rows([{"partition": {"f": "ä"}, "offset": {"n": 1}}]) == [
        {"partition": '{"f": "ä"}', "offset": '{"n": 1}'}
    ]

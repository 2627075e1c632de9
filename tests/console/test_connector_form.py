"""The form of a new connector: from real validations of a worker to fields, and from JSON to a config."""

from __future__ import annotations

import json

import pytest

from moldau.admin.connector_wizard import Question
from moldau.connect.validation import validate
from moldau.connect.worker import Settings
from moldau.console.model.connector_form import FIRST, OWN, Field, Kind, fields, pasted, plugin_of, sentence, title
from moldau.console.model.connectors import HIDDEN
from moldau.console.model.problems import Refused

JDBC = "io.confluent.connect.jdbc.JdbcSinkConnector"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def form_of(**config: str) -> dict[str, Field]:
    config = {name.replace("_", "."): text for name, text in config.items()}
    found = validate(config, Settings({}, "worker", "group"))
    return {one.name: one for one in fields(found, config)}


def test_what_must_be_set_comes_first_and_then_the_plugin_s_own_settings() -> None:
    form = form_of(connector_class=JDBC)
    assert next(iter(form)) == "name" and "connector.class" not in form
    first = {name for name, one in form.items() if one.group == FIRST}
    assert first == {"name", "connection.url", "topics", "topics.regex"}
    groups = list(dict.fromkeys(one.group for one in form.values()))
    assert groups[:3] == [FIRST, OWN, "Common"]
    importance = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}
    found = validate({"connector.class": JDBC}, Settings({}, "worker", "group"))["configs"]
    rank = {row["value"]["name"]: importance[row["definition"]["importance"]] for row in found}
    own = [rank[name] for name, one in form.items() if one.group == OWN]
    assert own == sorted(own) and len(set(own)) > 1


def test_a_setting_is_entered_as_its_type_says() -> None:
    form = form_of(connector_class=JDBC)
    assert form["connection.password"].kind is Kind.SECRET
    assert form["auto.create"].choices == ("true", "false")
    assert any(one.endswith("JsonConverter") for one in form["value.converter"].choices)
    assert form["topics"].kind is Kind.TEXT
    assert "JsonConverter" not in form["value.converter"].hint
    assert form["batch.size"].hint.endswith("(default 3000)")


def test_that_a_setting_is_missing_is_no_error_until_one_tries_to_create() -> None:
    form = form_of(connector_class=JDBC)
    url = form["connection.url"]
    assert url.is_required and url.question.errors == () and "Missing" in url.problems[0]
    wrong = form_of(connector_class=JDBC, name="x", topics="t", connection_url="nowhere", batch_size="many")
    assert "jdbc:sqlite:" in wrong["connection.url"].question.errors[0]
    assert "many" in wrong["batch.size"].question.errors[0]


def test_a_sentence_says_what_is_missing_and_what_is_wrong() -> None:
    config = {"connector.class": FILE, "batch.size": "many"}
    assert sentence(form_of(**config).values(), config) == "Missing: name, topic. Wrong: batch.size."
    config = {"connector.class": FILE, "name": "x", "topic": "t"}
    assert sentence(form_of(**config).values(), config) == ""


def test_settings_of_a_transform_appear_with_its_name() -> None:
    assert "transforms.one.type" in form_of(connector_class=FILE, transforms="one")


def test_a_config_or_a_whole_request_can_be_pasted() -> None:
    assert pasted('{"a": 1, "b": true, "c": null, "d": "x"}', {}, ()) == {"a": "1", "b": "true", "d": "x"}
    assert pasted('{"name": "n", "config": {"a": "1"}}', {}, ()) == {"name": "n", "a": "1"}
    assert pasted(json.dumps({"p": HIDDEN}), {"p": "s3cret"}, {"p"}) == {"p": "s3cret"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"a": {"b": 1}}', "The value of a must be"),
        ('{"some.password": "[hidden]"}', "some.password is hidden"),
    ],
)
def test_what_is_not_a_config_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        pasted(text, {}, ())


def test_a_plugin_is_known_by_its_short_name() -> None:
    for name in (FILE, "FileStreamSourceConnector", "FileStreamSource"):
        assert plugin_of(name, (JDBC, FILE)) == FILE
    assert plugin_of("Other", (JDBC, FILE)) is None


def test_plugins_of_the_same_name_can_be_told_apart() -> None:
    assert title(JDBC, "sink") == "JdbcSinkConnector (sink, io.confluent.connect.jdbc)"
    assert title("Weather", "source") == "Weather (source)"


def test_choices_that_are_only_known_as_a_list_are_in_the_hint() -> None:
    question = Question("modes", "How.", None, ("a", "b"), (), False)
    assert Field(question, Kind.TEXT, OWN, False, True, ()).hint == "How. (one of a, b)"

"""Validation of configs: errors that a worker of Apache Connect 4.3.1 gave for the same settings."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect import validation
from moldau.connect.worker import ENABLED, Settings
from tests.connect.running import STRING

WORKER = Settings({"key.converter": STRING, "value.converter": STRING}, "w", "g", exactly_once=ENABLED)
SOURCE = {"name": "q", "connector.class": "FileStreamSource", "topic": "t"}
SINK = {"name": "q", "connector.class": "FileStreamSink", "topics.regex": "li.*"}
TRANSFORMS = "org.apache.kafka.connect.transforms."


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    found = validation.validate(config, WORKER)["configs"]
    return {row["value"]["name"]: row["value"]["errors"] for row in found if row["value"]["errors"]}


def transform(name: str, **settings: str) -> dict[str, str]:
    made = {"transforms": "t", "transforms.t.type": TRANSFORMS + name}
    return made | {f"transforms.t.{key}": text for key, text in settings.items()}


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("errors.tolerance", "ALL", "String must be one of: none, all"),
        ("config.action.reload", "RESTART", "String must be one of: none, restart"),
        ("exactly.once.support", "nope", "String must be one of (case insensitive): REQUIRED, REQUESTED"),
        ("transaction.boundary", "nope", "String must be one of (case insensitive): INTERVAL, POLL, CONNECTOR"),
        ("transaction.boundary.interval.ms", "-1", "Value must be at least 0"),
        ("tasks.max", "0", "Value must be at least 1"),
    ],
)
def test_a_wrong_value_is_told_in_connects_words(name: str, text: str, error: str) -> None:
    assert errors({**SOURCE, name: text}) == {name: [f"Invalid value {text} for configuration {name}: {error}"]}


def test_an_interval_of_nothing_is_allowed() -> None:
    assert errors({**SOURCE, "transaction.boundary": "interval", "transaction.boundary.interval.ms": "0"}) == {}


def test_groups_of_topics_have_different_names() -> None:
    error = "Invalid value [a, a] for configuration topic.creation.groups: Duplicate alias provided."
    assert errors({**SOURCE, "topic.creation.groups": "a,a"}) == {"topic.creation.groups": [error]}


def test_a_transforms_validators_name_its_settings_without_the_prefix() -> None:
    assert errors(SOURCE | transform("MaskField$Value", fields="a,a", replacement="")) == {
        "transforms.t.fields": ["Configuration 'fields' values must not be duplicated."],
        "transforms.t.replacement": ["Invalid value  for configuration replacement: String must be non-empty"],
    }
    assert errors(SOURCE | transform("MaskField$Value")) == {
        "transforms.t.fields": [
            'Missing required configuration "transforms.t.fields" which has no default value.',
            "Configuration 'fields' values must not be null.",
        ]
    }
    assert errors(SOURCE | transform("DropHeaders", headers="")) == {
        "transforms.t.headers": ["Configuration 'headers' must not be empty. Valid values include: any non-empty value"]
    }
    assert errors(SOURCE | transform("ReplaceField$Value", exclude="a,,b", include="a,a", renames="a")) == {
        "transforms.t.exclude": ["Configuration 'exclude' values must not be empty."],
        "transforms.t.include": ["Configuration 'include' values must not be duplicated."],
        "transforms.t.renames": ["Invalid value [a] for configuration renames: Invalid rename mapping: a"],
    }
    found = errors(SOURCE | transform("HeaderFrom$Value", operation="copy"))
    assert found["transforms.t.headers"][1] == "Invalid value null for configuration headers: Empty list"


def test_a_converters_errors_name_its_settings_without_the_prefix() -> None:
    given = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "nope"}
    assert errors(SOURCE | given) == {
        "value.converter.schemas.enable": [
            "Invalid value nope for configuration schemas.enable: Expected value to be either true or false"
        ]
    }


def test_dead_letters_may_not_be_among_what_a_sink_reads() -> None:
    error = (
        "The DLQ topic 'lines' may not be matched by the regex for the topics ('topics.regex=li.*') "
        "consumed by the connector"
    )
    assert errors({**SINK, "errors.deadletterqueue.topic.name": "lines"}) == {"topics.regex": [error]}
    assert errors({**SINK, "errors.deadletterqueue.topic.name": "more"}) == {}
    both = "topics and topics.regex are mutually exclusive options, but both are set."
    found = errors({**SINK, "errors.deadletterqueue.topic.name": "lines", "topics": "x"})
    assert found == {"topics": [both], "topics.regex": [both, error]}


def test_standard_input_cannot_be_read_exactly_once() -> None:
    refused = "The connector does not support exactly-once semantics with the provided configuration."
    assert errors({**SOURCE, "exactly.once.support": "required"}) == {"exactly.once.support": [refused]}
    assert errors({**SOURCE, "exactly.once.support": "required", "file": "/x"}) == {}
    wrong = errors({**SOURCE, "exactly.once.support": "required", "file": "/x", "batch.size": "x"})
    reason = "Invalid value x for configuration batch.size: Not a number of type INT"
    assert wrong["exactly.once.support"] == [f"An unexpected error occurred during validation: {reason}"]


def test_only_overrides_of_clients_that_there_are_are_shown() -> None:
    def overrides(config: dict[str, str]) -> list[str]:
        given = {f"{kind}.override.client.id": "x" for kind in ("producer", "consumer", "admin")}
        found = validation.validate({**config, **given}, WORKER)["configs"]
        return [row["value"]["name"].partition(".")[0] for row in found if ".override." in row["value"]["name"]]

    assert overrides(SOURCE) == ["producer", "consumer", "admin"]
    assert overrides(SINK) == ["consumer"]
    assert overrides({**SINK, "errors.deadletterqueue.topic.name": "more"}) == ["producer", "consumer", "admin"]


def test_an_unknown_converter_has_no_version() -> None:
    found = validation.validate({**SOURCE, "key.converter": "Nope"}, WORKER)["configs"]
    [version] = [row for row in found if row["value"]["name"] == "key.converter.plugin.version"]
    assert version["value"]["value"] is None and not version["value"]["visible"]


def test_a_setting_that_a_java_connector_does_not_validate_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debezium's connectors have some."""
    made = validation.rows

    def rows(*given: Any) -> dict[str, Any]:
        document = made(*given)
        next(row for row in document["configs"] if row["definition"]["name"] == "batch.size")["value"] = None
        return document

    monkeypatch.setattr(validation, "rows", rows)
    config = {**SOURCE, "file": "f"}
    validation.refuse_invalid(config, WORKER)

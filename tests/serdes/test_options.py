"""Settings of serdes under Confluent's names."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.options import STRATEGIES, Options


def test_the_subject_follows_the_strategy() -> None:
    here = Context("orders", "key")
    assert STRATEGIES["TOPIC"](here, "com.Order") == "orders-key"
    assert STRATEGIES["RECORD"](here, "com.Order") == "com.Order"
    assert STRATEGIES["TOPIC_RECORD"](here, "com.Order") == "orders-com.Order"


def test_a_schema_without_a_name_has_no_subject_by_record() -> None:
    with pytest.raises(SerdeError, match="need a schema with a name"):
        STRATEGIES["RECORD"](Context("t"), None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"auto.register.schema": True}, "did you mean 'auto.register.schemas'"),
        ({"use.latest.version": "maybe"}, "must be bool"),
        ({"use.schema.id": "x"}, "must be int"),
        ({"use.schema.id": True}, "must be int"),
        ({"subject.name.strategy": "NAME"}, "one of TOPIC, RECORD, TOPIC_RECORD"),
        ({"schema.id.in": "footer"}, "one of prefix, header"),
        ({"use.latest.version": True, "auto.register.schemas": True}, "excludes"),
    ],
)
def test_a_wrong_setting_is_told_in_a_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.of(settings)


def test_text_from_a_command_line_will_do() -> None:
    options = Options.of({"use.latest.version": "true", "schema.id.in": "header", "subject.name.strategy": "record"})
    assert options.use_latest and options.in_header and not options.auto_register

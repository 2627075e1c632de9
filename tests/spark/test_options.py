"""Options of the source: what is understood, and what is said about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.serdes import formats
from moldau.spark.client_settings import client_settings
from moldau.spark.options import OptionError
from moldau.spark.source import typed_options
from moldau.spark.source.options import TABLE, Bound, SourceOptions

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def stream(**given: str) -> SourceOptions:
    return SourceOptions.of({**NEEDED, **given}, streaming=True)


def batch(**given: str) -> SourceOptions:
    return SourceOptions.of({**NEEDED, **given}, streaming=False)


def test_a_stream_begins_at_the_end_and_a_batch_job_at_the_start() -> None:
    assert stream().starting == Bound("latest")
    assert (batch().starting, batch().ending) == (Bound("earliest"), Bound("latest"))


def test_options_are_told_in_any_case_of_letters() -> None:
    assert stream(MAXOFFSETSPERTRIGGER="5", FailOnDataLoss="False").max_offsets == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribTopic": "x"}, "There is no option subscribTopic. Did you mean subscribe?"),
        (
            {"linger.ms": "5"},
            "There is no option linger.ms. If it is a setting of the Kafka client, write kafka.linger.ms.",
        ),
        ({"maxOffsetsPerTrigger": "0"}, "it must be a whole number from 1 on"),
        ({"failOnDataLoss": "maybe"}, "it must be true or false"),
        ({"maxTriggerDelay": "soon"}, "it must be a length of time, such as 30s, 15m or 500ms"),
        ({"startingOffsets": "first"}, 'it must be earliest, latest, or JSON such as {"orders"'),
        ({"startingOffsets": '{"orders": {"0": "5"}}'}, "it must be JSON such as"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "an offset must be from 0 on"),
        ({"startingOffsets": '{"orders": 5}'}, "it must be JSON such as"),
        ({"startingOffsets": "{" * 10_000}, "it must be JSON such as"),
        ({"endingOffsets": "latest"}, "A stream has no end"),
        ({"assign": '{"orders": [0]}'}, "subscribe and assign is set"),
        ({"subscribe": " , "}, "it must name topics, separated by commas"),
        ({"mode": "strict"}, "it must be one of permissive, dropmalformed, failfast"),
        ({"value.format": "xml"}, "it must be one of string, bytes"),
        ({"value.format": "avro"}, "needs a schema registry: set schema.registry.url"),
        ({"value.schema": "{}"}, "value.schema is set without value.format"),
        ({"kafka.auto.offset.reset": "earliest"}, "say startingOffsets"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers must be set"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        stream(**given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffsets": "latest"}, "begins at the end"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "begins at the end"),
        ({"endingOffsets": "earliest"}, "ends at the start"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "ends at the start"),
    ],
)
def test_a_batch_job_that_could_read_nothing_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        batch(**given)


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("30 s", 30_000), ("500ms", 500), ("2h", 7_200_000), ("7", 7)]
)
def test_lengths_of_time_are_written_as_in_spark(text: str, ms: int) -> None:
    assert stream(maxTriggerDelay=text).max_delay_ms == ms


def test_a_time_goes_before_times_and_those_before_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 7}}'}
    assert stream(**given).starting == Bound("timestamps", {("orders", 0): 7})
    assert stream(**given, startingTimestamp="9").starting == Bound("timestamp", at=9)


def test_the_group_of_progress_has_a_name_of_the_users() -> None:
    given: dict[str, Any] = {"groupIdPrefix": "p"}
    assert stream().group is None
    assert stream(**given).group == "p"
    given["application.id"] = "a"
    assert stream(**given).group == "a"
    given["kafka.group.id"] = "g"
    assert stream(**given).group == "g"


def test_the_formats_are_those_of_the_serdes() -> None:
    assert (*formats.FORMATS, typed_options.VARIANT) == typed_options.FORMATS


def test_every_option_has_a_meaning() -> None:
    assert all(row.meaning.endswith((".", "...")) for row in TABLE)


def settings(**given: str) -> dict[str, str]:
    named = {f"kafka.{name.replace('_', '.')}": text for name, text in given.items()}
    return client_settings({"kafka.bootstrap.servers": "b:1", **named})


def test_names_of_javas_client_are_understood() -> None:
    found = settings(fetch_max_wait_ms="7", max_poll_records="5", group_id="g")
    assert found == {"bootstrap.servers": "b:1", "fetch.wait.max.ms": "7"}


def test_a_password_may_stand_in_a_jaas_line() -> None:
    line = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="a\\"b";'
    found = settings(sasl_jaas_config=line)
    assert (found["sasl.username"], found["sasl.password"]) == ("me", 'a"b')
    with pytest.raises(OptionError, match="set KRB5CCNAME"):
        settings(sasl_jaas_config="com.sun.security.auth.module.Krb5LoginModule required ticketCache=x;")


def test_a_store_of_java_is_read_by_our_client() -> None:
    assert settings(ssl_truststore_location="/x.jks")["ssl.truststore.location"] == "/x.jks"
    found = settings(ssl_truststore_location="/x.pem", ssl_truststore_type="PEM")
    assert found["ssl.ca.location"] == "/x.pem"

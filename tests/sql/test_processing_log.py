"""The processing log of a query that runs: ksqlDB's fields, loggers by step, rows only on demand."""

from __future__ import annotations

from typing import Any

from moldau.serdes.primitive import BYTES
from moldau.sql.engine import Engine
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.lowering import build
from moldau.sql.processing_log import PARTS, ProcessingLog
from moldau.streams.driver import TopologyTestDriver

STATEMENTS = """
CREATE STREAM input (k STRING KEY, v INT) WITH (kafka_topic='input', value_format='JSON', partitions=1);
CREATE STREAM output AS SELECT k, 10 / v AS q FROM input WHERE 100 / (v - 5) < 100;
"""


def logged(values: list[bytes], include_rows: bool = False) -> tuple[list[dict[str, Any]], list[Any]]:
    """Run the statements over values; return the entries and what was written."""
    entries: list[dict[str, Any]] = []
    log = ProcessingLog(entries.append, include_rows, clock=lambda: 7)
    (plan,) = Engine().execute_text(STATEMENTS)
    driver = TopologyTestDriver(build(plan, LocalRegistry(), log))
    with driver:
        for value in values:
            driver.pipe("input", b"k", value, 0)
        written = driver.create_output_topic("OUTPUT", BYTES, BYTES)
        return entries, [record.value for record in written.read_records_to_list()]


def test_what_cannot_be_computed_is_logged_and_null() -> None:
    entries, written = logged([b'{"V": 2}', b'{"V": 0}'])
    assert written == [b'{"Q":5}', b'{"Q":null}']
    (entry,) = entries
    assert entry["level"] == "ERROR" and entry["time"] == 7
    assert entry["logger"] == "processing.CSAS_OUTPUT_0.Project"
    message = entry["message"]
    assert message["type"] == 1 and [part for part in PARTS if message[part]] == ["recordProcessingError"]
    error = message["recordProcessingError"]
    assert "10 / V" in error["errorMessage"] and error["cause"] == ["/ by zero"] and error["record"] is None


def test_a_row_whose_condition_fails_is_dropped_and_logged() -> None:
    entries, written = logged([b'{"V": 5}'])
    assert written == []
    assert [entry["logger"] for entry in entries] == ["processing.CSAS_OUTPUT_0.WhereFilter"]


def test_bytes_that_cannot_be_read_are_dropped_and_logged() -> None:
    entries, written = logged([b"{", b'{"V": 1}'], include_rows=True)
    assert written == [b'{"Q":10}']
    (entry,) = entries
    assert entry["logger"] == "processing.CSAS_OUTPUT_0.KsqlTopic.Source.deserializer"
    error = entry["message"]["deserializationError"]
    assert (entry["message"]["type"], error["target"], error["topic"], error["recordB64"]) == (
        0,
        "value",
        "input",
        "ew==",
    )


def test_rows_are_shown_only_on_demand() -> None:
    entries, _ = logged([b'{"V": 0}'], include_rows=True)
    assert "0" in entries[0]["message"]["recordProcessingError"]["record"]

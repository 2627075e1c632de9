"""The error codes, against Kafka's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.wire.errors import Error, UnsupportedRequest, WireError

PROGRAM = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
public class Codes {
    public static void main(String[] args) {
        for (Errors e : Errors.values())
            System.out.println(e.name() + " " + e.code() + " " + (e.exception() instanceof RetriableException));
    }
}
"""


def test_an_error_has_a_name_a_number_and_a_sentence() -> None:
    assert Error(3) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert Error.UNKNOWN_TOPIC_OR_PARTITION.retriable and not Error.NONE.retriable
    assert all(error.message.endswith(".") for error in Error)


def test_numbers_leave_no_gap() -> None:
    assert sorted(Error) == list(range(-1, 134))


def test_an_unsupported_request_is_a_wire_error() -> None:
    assert issubclass(UnsupportedRequest, WireError)


@pytest.mark.needs("java")
def test_names_numbers_and_retries_are_kafkas(kafka_libs: Path, tmp_path: Path) -> None:
    program = tmp_path / "Codes.java"
    program.write_text(PROGRAM)
    command = ["java", "-cp", f"{kafka_libs}/*", str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == [f"{error.name} {error.value} {str(error.retriable).lower()}" for error in Error]

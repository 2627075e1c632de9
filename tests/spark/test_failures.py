"""Why a query ended, read out of Spark's text, and whether it is worth another try."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from moldau.client.errors import unreachable
from moldau.spark.runner.failures import kind_of, sentence_of, text_of
from moldau.spark.sink.markers import Refused
from moldau.spark.source.loss import DataLoss, lost

NESTED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure:
Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 5) (localhost executor driver):
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/worker.py", line 1, in main
    process()
{}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
"""

CASES = [
    ("moldau.client.errors.ClientError: The cluster has no broker 1 just now.", True),
    ("moldau.client.errors.ClientError: Produce of t: Not allowed (TOPIC_AUTHORIZATION_FAILED).", False),
    ("moldau.spark.sink.markers.Refused: application a has written up to batch 3 of query q", False),
    ("moldau.spark.options.OptionError: There is no option topc. Did you mean topic?", False),
    ("moldau.serdes.registry.RegistryError: the schema registry http://x cannot be reached: refused", True),
    ("moldau.serdes.context.SerdeError: column a does not fit int64", False),
    ("moldau.spark.source.loss.DataLoss: The topic t was deleted: t-0 is lost from offset 3 on.", False),
    ("ValueError: invalid literal for int() with base 10: 'x'", False),
    ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", True),
    ("java.io.EOFException", True),
    ("java.io.IOException: Broken pipe", True),
    ("java.nio.channels.ClosedChannelException", True),
    ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", True),
    ("org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN] x", False),
]


@pytest.mark.parametrize(("text", "retriable"), CASES)
def test_a_failure_is_worth_another_try_by_what_its_text_says(text: str, retriable: bool) -> None:
    assert kind_of(NESTED.format(text)).retriable is retriable


def test_records_that_are_lost_are_told_from_other_errors() -> None:
    try:
        lost(["The topic t is gone."], fail=True)
    except DataLoss as error:
        text = NESTED.format(f"{type(error).__module__}.{type(error).__name__}: {error}")
    assert kind_of(text).name == "records are lost"


def test_a_refusal_of_the_sink_is_one_whatever_its_text_mentions() -> None:
    text = NESTED.format(f"{Refused.__module__}.Refused: the marker topic t cannot be made (Connection refused)")
    assert kind_of(text).name == "the sink refuses"


def test_the_sentence_is_pythons_and_not_the_traces_around_it() -> None:
    sentence = "Refused: application a has written up to batch 3"
    assert sentence_of(NESTED.format(f"moldau.spark.sink.markers.{sentence}")) == sentence
    assert sentence_of(NESTED.format("ValueError: no")) == "ValueError: no"


def test_without_python_the_innermost_exception_of_java_is_told() -> None:
    text = "x\njava.lang.RuntimeException: outer\n\tat a.b\nCaused by: java.io.IOException: No space left\n\tat c.d"
    assert sentence_of(text) == "IOException: No space left"
    assert sentence_of("something else\nand more") == "something else"


def test_the_cause_of_a_batch_that_could_not_be_aborted_is_found() -> None:
    """As PySpark has it: the message is the outermost one."""
    cause: Any = RuntimeError()
    error: Any = RuntimeError("[STREAM_FAILED] Writing job failed.")
    cause._stackTrace = "org.apache.spark.SparkException: no.\nCaused by: java.io.EOFException\n\tat a.b"
    error._cause = cause
    assert kind_of(text_of(error)).retriable
    assert text_of(PySparkException("no")) == "no"


def test_an_error_of_python_says_its_class_and_where_it_came_from() -> None:
    def fail() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    with pytest.raises(RuntimeError) as caught:
        fail()
    text = text_of(caught.value)
    assert "in fail" in text and sentence_of(text) == "RuntimeError: dictionary changed size during iteration"
    assert kind_of(text_of(unreachable("no broker answers"))).retriable


def test_what_a_program_has_in_its_source_is_no_reason() -> None:
    def fail(is_away: bool) -> None:
        raise ConnectionError("Connection refused") if is_away else ValueError("enough")

    for is_away in (False, True):
        with pytest.raises((ConnectionError, ValueError)) as caught:
            fail(is_away)
        assert kind_of(NESTED.format(text_of(caught.value))).retriable is is_away

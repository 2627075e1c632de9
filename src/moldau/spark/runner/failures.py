"""Why a query ended, and whether it is worth starting again: a table of what its exception says, the first row counts.

Spark hands on Python's exceptions as text within text, so text is all there is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moldau.client import ClientError
from moldau.spark.sink.markers import Refused

MOST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure: how it is recognized, and whether another try may help."""

    pattern: re.Pattern[str]
    retriable: bool
    name: str


def _row(pattern: str | type[Exception], retriable: bool, name: str) -> Kind:
    if not isinstance(pattern, str):
        pattern = re.escape(f"{pattern.__module__}.{pattern.__name__}:")
    return Kind(re.compile(pattern), retriable, name)


TABLE = (
    _row(Refused, False, "the sink refuses"),
    _row(r"\b(OptionError|SettingError):", False, "a wrong option"),
    _row(r"AUTHORIZATION_FAILED|AUTHENTICATION_FAILED|ILLEGAL_SASL_STATE", False, "no access"),
    _row(r"RegistryError: .*(cannot be reached|refused: .*\b50\d)", True, "the schema registry is away"),
    _row(r"\bSerdeError:|\bRegistryError:", False, "a value does not fit its schema"),
    _row(r"\bDataLoss:|DATA_LOSS|data may have been lost", False, "records are lost"),
    _row(ClientError, True, "the cluster is away"),
    _row(r"Python worker (exited unexpectedly|failed to connect back)|EOFException", True, "a Python worker died"),
    _row(r"ExecutorLostFailure|executor lost|FetchFailed|Slave lost|worker lost", True, "an executor died"),
    _row(r"Connection (refused|reset)|No route to host|SocketTimeout|TimeoutException", True, "the network failed"),
    _row(r"java\.(io|net|nio)\.[\w.]*(IO|Socket|ClosedChannel)Exception|Broken pipe", True, "a process went away"),
    _row(r"OutOfMemoryError", True, "memory ran out"),
    _row(r"AnalysisException|ParseException|UnsupportedOperation", False, "a query that Spark cannot run"),
)
OTHER = Kind(re.compile(""), False, "an error of the query itself")

_TOLD = re.compile(r"^(?:Caused by: )?([A-Za-z_][\w.$]*\.)?(\w*(?:Error|Exception|Refused|Exit)): (\S.*)$", re.M)
_OF_JAVA = ("java.", "javax.", "org.", "scala.", "com.", "py4j.", "pyspark.")


def text_of(error: BaseException) -> str:
    """All that Spark tells of a failure. Where a batch could not even be aborted, its cause stands in no message."""
    trace = getattr(getattr(error, "_cause", None), "_stackTrace", None)
    return f"{error}\n{trace}" if trace else str(error)


def kind_of(text: str) -> Kind:
    """What kind of failure an exception's text tells of."""
    text = text[:MOST_TEXT]
    return next((row for row in TABLE if row.pattern.search(text)), OTHER)


def sentence_of(text: str) -> str:
    """The sentence that says it: the last Python exception that is told of, else the innermost one of Java."""
    text = text[:MOST_TEXT]
    found = [match for match in _TOLD.finditer(text) if match[2] != "PythonException"]
    ours = [match for match in found if not (match[1] or "").startswith(_OF_JAVA)]
    if not found:
        return text.strip().partition("\n")[0]
    last = (ours or found)[-1]
    return f"{last[2]}: {last[3].strip()}"

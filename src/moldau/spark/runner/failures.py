"""Why a query failed and whether to restart it: a table of patterns for the exception's text; the first match counts.

Spark passes Python's exceptions on as text within text, so text is all there is.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

from moldau.client import ClientError
from moldau.spark.sink.markers import Refused

MOST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure: its pattern, and whether another try may help."""

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

_EXCEPTION = re.compile(r"^(?:Caused by: )?([A-Za-z_][\w.$]*\.)?(\w*(?:Error|Exception|Refused|Exit)): (\S.*)$", re.M)
_SOURCE = re.compile(r"""^( *File "[^"\n]*", line \d+.*\n)(?: {4}.*\n)+""", re.M)  # of a trace of Python
OF_SPARK = ("pyspark.", "py4j.")
_OF_JAVA = ("java.", "javax.", "org.", "scala.", "com.", "py4j.", "pyspark.")


def text_of(error: BaseException) -> str:
    """Return all that Spark says about a failure, or where one of Python's came from.

    If a batch could not even be aborted, no message has the cause.
    """
    trace = getattr(getattr(error, "_cause", None), "_stackTrace", None)
    if trace:
        return f"{error}\n{trace}"
    return str(error) if type(error).__module__.startswith(OF_SPARK) else "".join(traceback.format_exception(error))


def kind_of(text: str) -> Kind:
    """Return the kind of a failure by the exception's text; what a program says in its source does not count."""
    text = _SOURCE.sub(r"\1", text[:MOST_TEXT])
    return next((row for row in TABLE if row.pattern.search(text)), OTHER)


def sentence_of(text: str) -> str:
    """Return the sentence that matters: the last Python exception, otherwise the innermost one of Java."""
    text = text[:MOST_TEXT]
    exceptions = [match for match in _EXCEPTION.finditer(text) if match[2] != "PythonException"]
    ours = [match for match in exceptions if not (match[1] or "").startswith(_OF_JAVA)]
    if not exceptions:
        return text.strip().partition("\n")[0]
    last = (ours or exceptions)[-1]
    return f"{last[2]}: {last[3].strip()}"

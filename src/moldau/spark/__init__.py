"""Topics in Spark: a session, and the data source "moldau" for Structured Streaming and batch jobs. See docs/spark.md.

Only the session is imported here: Python workers of Spark import this package too, and should start fast.
"""

from typing import TYPE_CHECKING, Any

from moldau.spark.session import session

if TYPE_CHECKING:
    from moldau.spark.runner import run

__all__ = ["run", "session"]


def __getattr__(name: str) -> Any:
    if name == "run":
        from moldau.spark.runner import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

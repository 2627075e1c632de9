"""Topics in Spark: a session, and the data source "moldau" for Structured Streaming and batch jobs. See docs/spark.md.

Only the session is imported here: Python workers of Spark import this package too, and start the faster for it.
"""

from moldau.spark.session import session

__all__ = ["session"]

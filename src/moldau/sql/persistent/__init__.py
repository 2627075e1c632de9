"""Persistent queries on Spark: flows of the kind `query`, which workers read from the command topics of SQL servers."""

"""A plan as one Structured Streaming query: one source, a pass for what has no state, a stateful operator for each
level, and one sink. See levels.py and shards.py for what happens to records; here it is put on Spark.
"""

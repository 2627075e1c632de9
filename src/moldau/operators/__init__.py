"""Exact, record-at-a-time processors and their stores, in plain Python: no Spark, no I/O, no clock, no randomness."""

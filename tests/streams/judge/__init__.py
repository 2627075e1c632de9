"""Kafka Streams itself as the judge: named topologies in Java and in Python, the same random input to both, and what
they make compared record for record, with changelogs, final stores and the text of describe().

`python -m tests.streams.judge --examples N --topology NAME` runs longer than the tests do, and writes
docs/streams-judge.md if asked.
"""

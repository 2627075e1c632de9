"""The same requests to Apache Kafka 4.3.1 and to Moldau: the decoded answers must agree.

A script (a file of `scripts/`) has topics and cases, which are sent in order to both brokers, and may be run alone:
`pytest tests/conformance/differential -k fetch`. To add a case is to add a row. Its answers are made comparable by the
tables of `normal.py`, and a difference that is left must stand in `accepted.toml` with its reason, from which
docs/deviations.md is made (`make docs`). A row there that no answer needs any more fails, too.
"""

"""The REST Proxy: topics, groups and settings of any Kafka over HTTP, in Confluent's versions 2 and 3.

`endpoints.py` is the shape of an endpoint; the tables of them are `v2/` and `v3/`, and the OpenAPI document is made
from the same rows.
"""

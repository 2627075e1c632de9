"""Clusters of Moldau and Apache Kafka together: what takes too long for `make test`."""

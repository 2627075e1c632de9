"""Moldau beside Apache Kafka: the same client, the same file system, runs that alternate. `make bench`."""

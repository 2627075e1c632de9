"""Debezium's connectors and ours beside each other: the same changes of one database, record by record."""

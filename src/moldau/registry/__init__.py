"""The Schema Registry: schemas by subject, version and id, kept in the compacted topic `_schemas`."""

"""Apache Iceberg's own REST catalog, for the tests of the sink."""

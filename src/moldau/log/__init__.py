"""One partition on disk, in the layout of Apache Kafka."""

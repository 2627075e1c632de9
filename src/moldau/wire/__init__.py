"""The Kafka protocol as facts: messages, codec, record batches, error codes. No I/O lives here."""

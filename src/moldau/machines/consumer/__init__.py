"""Consumer groups (KIP-848): the coordinator assigns partitions."""

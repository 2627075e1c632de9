"""Classic groups: members elect a leader, which assigns partitions."""

"""Change data capture from PostgreSQL: its types, its replication protocol, its snapshots."""

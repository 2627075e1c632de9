"""Consumers that read in groups, by each protocol, and what is known of their groups."""

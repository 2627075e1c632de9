"""Kafka's own tools and ours side by side: the same command lines, the same broker, the same words."""

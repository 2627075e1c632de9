"""The log of a partition."""

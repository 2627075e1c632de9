"""Deterministic state machines: commands return records and a response; only replay changes state."""

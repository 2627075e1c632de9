"""Signed tokens (JWT) and the keys that sign them, for broker and services."""

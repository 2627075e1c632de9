"""Stores: ordered bytes at the bottom, and on top what operators see: key-value, window, session, versioned."""

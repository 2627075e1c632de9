"""Moldau: a streaming platform for Python teams; see ARCHITECTURE.md."""

__version__ = "0.1.0"

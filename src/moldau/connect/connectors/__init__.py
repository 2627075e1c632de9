"""The connectors that come with Moldau, each in a file of its own; `plugins.py` has their table."""

"""Moldau's tests; they mirror src/moldau."""

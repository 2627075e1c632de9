"""Tests of what commands do to a cluster."""

"""Tests of what the HTTP services share."""

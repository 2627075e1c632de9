"""Tests of Kafka's own command lines."""

"""Tests of the client: alone, against brokers that misbehave, on Moldau, and on Apache Kafka."""

"""Typed data on topics: schemas, serializers and deserializers in Confluent's wire format, and Arrow in and out."""

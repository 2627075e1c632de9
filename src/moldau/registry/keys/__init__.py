"""Keys for the encryption of fields: Confluent's DEK registry, `/dek-registry/v1`, on a compacted topic of its own.

A key encryption key (KEK) names a key in a key management service; data encryption keys (DEK) belong to one, and to a
subject. Stored is what the service has encrypted, never a key itself.
"""

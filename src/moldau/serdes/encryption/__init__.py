"""Encryption of fields by rules of a schema, as Confluent's clients do it.

A *data encryption key* (DEK) encrypts the fields of one subject. It is stored in the registry, itself encrypted by a
*key encryption key* (KEK), which never leaves a key management service (KMS). So whoever may ask the KMS can read the
fields; brokers, registry and everybody else see what looks like random bytes.
"""

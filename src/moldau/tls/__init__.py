"""Certificates and TLS for broker, client and services: stores, contexts, and the names that certificates carry."""

from moldau.tls.contexts import Get, client_context, server_context, words
from moldau.tls.names import MappingRules, java_name
from moldau.tls.stores import Identity, Store, StoreError, open_store

__all__ = [
    "Get",
    "Identity",
    "MappingRules",
    "Store",
    "StoreError",
    "client_context",
    "java_name",
    "open_store",
    "server_context",
    "words",
]

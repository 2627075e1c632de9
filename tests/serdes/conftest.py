"""A registry in memory that Moldau's serdes and confluent-kafka's own share."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.serdes.registry import Registry


@pytest.fixture
def client() -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient.new_client({"url": "mock://serdes"})


@pytest.fixture
def registry(client: Any) -> Registry:
    return Registry(client)

"""Where a cluster and its registry are, and how one talks to them: settings become clients when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client import Client

BOOTSTRAP, REGISTRY = "127.0.0.1:9092", "http://127.0.0.1:8081"
REGISTRY_PREFIX, CONNECT_PREFIX = "schema.registry.", "connect."
# A person waits, and knows which topics there are: mistakes are told soon.
DEFAULTS = {
    "client.id": "moldau",
    "default.api.timeout.ms": "10000",
    "topic.metadata.propagation.max.ms": "1000",
    "allow.auto.create.topics": "false",
}


@dataclass(slots=True)
class Connection:
    """A cluster and its registry. `settings` are those of clients, and of the registry's with REGISTRY_PREFIX."""

    bootstrap_servers: str = BOOTSTRAP
    registry_url: str = REGISTRY
    settings: Mapping[str, str] = field(default_factory=dict)
    _client: Client | None = None

    @property
    def client(self) -> Client:
        """The one client, made when it is first needed."""
        if self._client is None:
            self._client = Client({**DEFAULTS, **self.kafka_settings})
        return self._client

    @property
    def kafka_settings(self) -> dict[str, str]:
        """Under librdkafka's names; nothing of the registry and of Connect."""
        others = (REGISTRY_PREFIX, CONNECT_PREFIX)
        own = {name: value for name, value in self.settings.items() if not name.startswith(others)}
        return {**own, "bootstrap.servers": self.bootstrap_servers}

    @property
    def registry_settings(self) -> dict[str, Any]:
        """Under the names of confluent-kafka's registry client, with `schema.registry.` in front."""
        return {**self.registry_login, f"{REGISTRY_PREFIX}url": self.registry_url}

    @property
    def registry_login(self) -> dict[str, Any]:
        """The settings of the registry's client without its address."""
        return {
            name: int(value) if value.isdecimal() else value
            for name, value in self.settings.items()
            if name.startswith(REGISTRY_PREFIX) and name != f"{REGISTRY_PREFIX}url"
        }

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

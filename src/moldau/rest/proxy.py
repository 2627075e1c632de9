"""What endpoints work with: clients of the cluster, consumer instances, formats."""

from __future__ import annotations

from typing import Any

from moldau.rest.errors import WRONG_SCHEMA, refusal
from moldau.rest.formats import PLAIN, Decoder, Encoded, Encoder, Format, plain_decoder
from moldau.rest.instances import Instances
from moldau.rest.kafka import Kafka
from moldau.rest.producing import Producing
from moldau.settings import ServiceSettings


class Proxy:
    """What endpoints work with."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.kafka = Kafka(settings)
        self.producing = Producing(self.kafka, settings)
        self.instances = Instances(settings)
        self.cluster_id = ""
        self.streams = 0

    def close(self) -> None:
        self.instances.close()
        self.producing.close()
        self.kafka.close()

    async def encode(self, topic: str, field: str, spec: dict[str, Any], headers: list[Any]) -> Encoded:
        """A key or value of version 3."""
        name, data = spec.get("type"), spec.get("data")
        if name in PLAIN:
            return Encoded(None if data is None else PLAIN[name].to_bytes(data), name)
        raise refusal(WRONG_SCHEMA, f"{name or 'a type that is left out'} is not served; use BINARY, JSON or STRING.")

    async def encoder(self, topic: str, format: str, body: dict[str, Any]) -> Encoder:
        """For the keys and values of a request of version 2."""
        return Encoder(self._plain(format))

    def decoder(self, format: str) -> Decoder:
        """For the keys and values that a consumer instance reads."""
        return plain_decoder(self._plain(format))

    def _plain(self, format: str) -> Format:
        if format.upper() not in PLAIN:
            raise refusal(WRONG_SCHEMA, f"{format} is not served; use binary or json.")
        return PLAIN[format.upper()]

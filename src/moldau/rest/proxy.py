"""What endpoints work with: clients of the cluster, consumer instances, formats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from moldau.admin.acting import Acting
from moldau.http import Caller, HttpError
from moldau.rest.errors import KEY_SCHEMA_MISSING, VALUE_SCHEMA_MISSING, refusal
from moldau.rest.formats import PLAIN, Decoder, Encoded, plain_decoder
from moldau.rest.instances import Instances
from moldau.rest.kafka import Kafka
from moldau.rest.producing import Producing
from moldau.rest.typed import Chosen, Schemas, Wish, encode
from moldau.settings import ServiceSettings

SPEC = ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema")  # in the order of a Wish
MISSING = {"key": KEY_SCHEMA_MISSING, "value": VALUE_SCHEMA_MISSING}


class Proxy:
    """What endpoints work with, in the name of the proxy itself or of a caller."""

    def __init__(self, settings: ServiceSettings, schemas: Schemas | None = None) -> None:
        self.settings = settings
        self.kafka = Kafka(settings)
        self.instances = Instances(settings)
        self.schemas = schemas or Schemas(settings)
        self.cluster_id = ""
        self.streams = 0

    @cached_property
    def producing(self) -> Producing:
        return Producing(self.kafka, self.settings)

    def close(self) -> None:
        self.instances.close()
        if "producing" in vars(self):
            self.producing.close()
        self.kafka.close()

    async def encode(self, topic: str, field: str, spec: dict[str, Any]) -> Encoded:
        """Encode a key or value of version 3."""
        name, data = spec.get("type"), spec.get("data")
        parts = {part: spec.get(part) for part in SPEC}
        _check_type(name, parts)
        if name in PLAIN:
            return Encoded(None if data is None else PLAIN[name].to_bytes(data), name)
        return encode(await self._chosen(Wish(topic, field, name, *parts.values())), data, topic, field)

    async def encoder(self, topic: str, format: str, body: dict[str, Any]) -> Callable[[str, Any], Encoded]:
        """Return what encodes the keys and values of a request of version 2, as `encoder("key", data)`."""
        if plain := PLAIN.get(format):
            return lambda _, data: Encoded(None if data is None else plain.to_bytes(data))
        chosen: dict[str, Chosen] = {}
        for field, code in MISSING.items():
            id, text = body.get(f"{field}_schema_id"), body.get(f"{field}_schema")
            if id is not None or text is not None:
                named = {"text": text} if id is None else {"id": int(id)}
                wish = Wish(topic, field, format, **named)
                chosen[field] = await self._chosen(wish)
            elif any(row.get(field) is not None for row in body["records"]):
                raise refusal(code)

        def encoded(field: str, data: Any) -> Encoded:
            return encode(chosen[field], data, topic, field) if field in chosen else Encoded(None)

        return encoded

    async def _chosen(self, wish: Wish) -> Chosen:
        return self.schemas.known(wish) or await self.kafka.run(self.schemas.find, wish)

    def decoder(self, format: str) -> Decoder:
        """Return what decodes the keys and values that a consumer instance reads."""
        return plain_decoder(PLAIN[format]) if format in PLAIN else partial(self.schemas.decode, format)


class Proxies:
    """The proxy itself, and with `moldau.act.as.caller` one for each caller."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.own = Proxy(settings)
        self._acting: Acting[Proxy] | None = None
        if settings["moldau.act.as.caller"]:
            self._acting = Acting(
                self.own.kafka.client,
                settings["moldau.act.as.caller.mechanism"],
                partial(_for_caller, settings, self.own.schemas),
                Proxy.close,
                settings["moldau.act.as.caller.max"],
            )

    async def of(self, caller: Caller) -> Proxy:
        if self._acting is None:
            return self.own
        return self._acting.find(caller.name) or await self.own.kafka.run(self._acting.of, caller.name)

    async def expire(self) -> None:
        """Close, for ever, instances that were not used for long enough."""
        while True:
            await asyncio.sleep(self.own.instances.look_every_s)
            for proxy in (self.own, *(self._acting.all() if self._acting else ())):
                await proxy.instances.expire()

    def close(self) -> None:
        if self._acting is not None:
            self._acting.close()
        self.own.close()
        self.own.schemas.close()


def _for_caller(settings: ServiceSettings, schemas: Schemas, login: Mapping[str, str]) -> Proxy:
    return Proxy(settings.with_given({f"client.{name}": text for name, text in login.items()}), schemas)


def _check_type(name: str | None, parts: dict[str, Any]) -> None:
    if name in PLAIN and any(part is not None for part in parts.values()):
        raise HttpError(400, f"Bad Request: {name} has no schema.")
    if name is not None and name not in PLAIN and parts["schema"] is None:
        raise HttpError(400, f"Bad Request: type {name} goes with a schema; one that is registered has its own.")

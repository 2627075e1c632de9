"""What the converters with a schema registry share: the connection and the subjects of schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from moldau.connect.converters.registry_rows import STRATEGY_NAMES
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SchemaRef
from moldau.serdes.options import Options
from moldau.serdes.registry import Registered, Registry, RegistryError, Schema
from moldau.serdes.typed import Subjects


def connected(settings: Mapping[str, Any]) -> Registry:
    """Connect to the registry that the settings name."""
    given = {"url": ",".join(settings["schema.registry.url"])}
    if settings["basic.auth.user.info"].value:
        given["basic.auth.user.info"] = settings["basic.auth.user.info"].value
    if settings["schema.registry.ssl.truststore.location"]:
        given["ssl.ca.location"] = settings["schema.registry.ssl.truststore.location"]
    try:
        return Registry.connect(given)
    except ValueError as error:
        raise ConfigError(str(error)) from None


class Subject:
    """The schemas of a converter's keys or values in the registry."""

    def __init__(self, settings: Mapping[str, Any], registry: Registry, field: Literal["key", "value"]) -> None:
        self.field: Literal["key", "value"] = field
        self.registry = registry
        named = settings[f"{field}.subject.name.strategy"]
        latest = settings["use.latest.version"]
        given = {
            "use.latest.version": latest,
            "normalize.schemas": settings["normalize.schemas"],
            "subject.name.strategy": STRATEGY_NAMES.get(named, named),
        }
        if not latest:
            given["auto.register.schemas"] = settings["auto.register.schemas"]
        self.options = Options.of(given)
        self._known: dict[tuple[Schema, str | None], Subjects] = {}
        self._most_known: int = settings["schemas.cache.config"]

    def settle(self, context: Context, own: Schema, name: str | None) -> Registered:
        """Return the schema to write with, registered under the subject of the context."""
        subjects = self._known.get((own, name))
        if subjects is None:
            if len(self._known) >= self._most_known:
                self._known.pop(next(iter(self._known)))
            subjects = self._known[own, name] = Subjects(self.registry, self.options, own, name)
        try:
            return subjects.to_write(context)
        except SerdeError as error:
            raise _failed(error) from None

    def registered(self, ref: SchemaRef, context: Context) -> Schema:
        """Return the schema that bytes were written with."""
        try:
            return Subjects(self.registry, self.options).writer(ref, context)
        except RegistryError as error:
            raise _failed(error) from None


def _failed(error: SerdeError) -> ConnectError:
    retriable = isinstance(error, RegistryError) and error.retriable
    return (RetriableError if retriable else ConnectError)(str(error))

"""Settings of clients: Java's names are translated into those of our client, or refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.operators.context import TopologyError
from moldau.spark.client_settings import PREFIX, client_settings
from moldau.spark.options import OptionError


def translate(settings: Mapping[str, str]) -> dict[str, str]:
    try:
        return client_settings({f"{PREFIX}{name}": text for name, text in settings.items()})
    except OptionError as error:
        raise TopologyError(str(error).replace(f" option {PREFIX}", " setting ")) from None

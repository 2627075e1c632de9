"""Settings of clients: Java's names become those of our client, or are refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.operators.context import TopologyError
from moldau.spark.client_settings import PREFIX, client_settings
from moldau.spark.options import OptionError


def in_our_words(told: Mapping[str, str]) -> dict[str, str]:
    try:
        return client_settings({f"{PREFIX}{name}": text for name, text in told.items()})
    except OptionError as error:
        raise TopologyError(str(error).replace(f" option {PREFIX}", " setting ")) from None

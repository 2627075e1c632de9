"""A filter of topics by a regular expression, or a list with commas, as in Kafka's tools."""

from __future__ import annotations

import re

from moldau.cli.kafka.running import Terse

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


class TopicFilter:
    """A filter that allows topics whose whole name matches."""

    __slots__ = ("_pattern",)

    def __init__(self, text: str) -> None:
        plain = text.strip().replace(",", "|").replace(" ", "").lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(plain)
        except re.error:
            raise Terse(f"{plain} is an invalid regex.") from None

    def allows(self, name: str, *, internal: bool = True) -> bool:
        return bool(self._pattern.fullmatch(name)) and (internal or name not in INTERNAL)

"""Topics chosen by a regular expression, as Kafka's tools choose them: a list with commas will do too."""

from __future__ import annotations

import re

from moldau.cli.kafka.running import Terse

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


class TopicFilter:
    """Allows the topics whose whole name matches."""

    __slots__ = ("_pattern",)

    def __init__(self, text: str) -> None:
        plain = text.strip().replace(",", "|").replace(" ", "").lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(plain)
        except re.error:
            raise Terse(f"{plain} is an invalid regex.") from None

    def allows(self, name: str, *, internal: bool = True) -> bool:
        return bool(self._pattern.fullmatch(name)) and (internal or name not in INTERNAL)

"""The partitioner of windowed keys: by the key inside, so that all windows of a key are in one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.operators.coders import ANYWHERE
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.context import Context
from moldau.serdes.primitive import Plain
from moldau.wire.numbers import murmur2

WindowedSerde = TimeWindowedSerde | SessionWindowedSerde


@dataclass(frozen=True, slots=True)
class ByInnerKey:
    """Kafka's WindowedStreamPartitioner. Its serde is set when the topology is built."""

    serde: WindowedSerde | None = None

    def parts(self, keys: list[Any]) -> list[Any]:
        """Return the parts of the keys that decide."""
        return [None if key is None else key.key for key in keys]

    def __call__(self, topic: str, key: Any, value: Any, count: int) -> int | None:
        if key is None or count == 1:  # one partition, or a topic that was not there at the start: the sink decides
            return None
        assert self.serde is not None and self.serde.inner is not None
        inner = self.serde.inner
        where = ANYWHERE if isinstance(inner, Plain) else Context(topic, "key")
        return murmur2(inner.to_bytes(key.key, where) or b"") % count


def partitioner_of(given: Any, key: Any) -> Any:
    """Return the given partitioner, or the one that windowed keys need."""
    return ByInnerKey() if given is None and isinstance(key, WindowedSerde) else given

"""One number that tells when the topics of a group change. It is Kafka's, and is written with the group's epoch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import pack

from xxhash import xxh3_64_intdigest

from moldau.machines.metadata.cluster import Cluster, Topic

TOPICS_KEPT = 4096


def metadata_hash(names: Iterable[str], cluster: Cluster) -> int:
    """One number for the topics that there are of these: ids, names, partitions and racks. Kafka's, signed."""
    known = [cluster.topics[name] for name in sorted(names) if name in cluster.topics]
    if not known:
        return 0
    number = xxh3_64_intdigest(b"".join(topic_hash(topic.id, topic.name, racks(topic, cluster)) for topic in known))
    return number - (1 << 64) if number >> 63 else number


@lru_cache(TOPICS_KEPT)
def topic_hash(topic_id: bytes, name: str, racks: tuple[tuple[str, ...], ...]) -> bytes:
    """Kafka's hash of a topic: XXH3 of its fields, little-endian, strings as UTF-16 with their length behind."""
    rows = [b"\0", topic_id[7::-1], topic_id[:7:-1], text(name), pack("<i", len(racks))]
    for index, places in enumerate(racks):
        rows.append(pack("<i", index))
        for rack in places:
            rows += (pack("<i", utf16_length(rack)), text(rack))
    return pack("<Q", xxh3_64_intdigest(b"".join(rows)))


def racks(topic: Topic, cluster: Cluster) -> tuple[tuple[str, ...], ...]:
    """Return where the replicas of each partition are, as far as their brokers say."""
    known = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack}
    if len(cluster.brokers) == 1 or not known:
        return (tuple(known.values()),) * len(topic.partitions)
    places: dict[tuple[int, ...], tuple[str, ...]] = {}
    rows: list[tuple[str, ...]] = []
    for index in range(len(topic.partitions)):
        replicas = topic.partitions[index].replicas
        if replicas not in places:
            places[replicas] = tuple(sorted(known[replica] for replica in replicas if replica in known))
        rows.append(places[replicas])
    return tuple(rows)


def text(value: str) -> bytes:
    return value.encode("utf-16-le", "surrogatepass") + pack("<i", utf16_length(value))


def utf16_length(value: str) -> int:
    return len(value.encode("utf-16-le", "surrogatepass")) // 2

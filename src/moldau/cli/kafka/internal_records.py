"""Records of internal topics as text, as Kafka's dump tool and its message formatters write them."""

from __future__ import annotations

from typing import Any

from moldau.cli.kafka.record_json import compact, to_json
from moldau.wire import codec, messages, schema
from moldau.wire.errors import WireError

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
SHARES, METADATA = "__share_group_state", "__cluster_metadata"
OLD_OFFSET_KEY, OFFSET_KEY, GROUP_KEY = 0, 1, 2
EMBEDDED = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
DELETED = "<DELETE>"  # instead of the value of a record that deletes
Text = tuple[str | None, str | None]


class Unknown(Exception):
    """An error for a record of an unknown type, which has this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def key_of(topic: str, key: bytes) -> tuple[int, Any]:
    """Decode the key of a coordinator's record; it starts with the type, where other messages have a version."""
    number = int.from_bytes(key[:2], signed=True)
    known = schema.records(topic)
    kind = OFFSET_KEY if topic == OFFSETS and number == OLD_OFFSET_KEY else number
    if len(key) < 2 or ("coordinator-key", kind) not in known:
        raise Unknown(number)
    cls = messages.record_class(topic, "coordinator-key", kind)
    return number, codec.decode(cls, 0, key, 2)


def value_of(topic: str, number: int, value: bytes) -> tuple[int, Any]:
    """Decode the version and the value of a coordinator's record."""
    kind = OFFSET_KEY if topic == OFFSETS and number == OLD_OFFSET_KEY else number
    version = int.from_bytes(value[:2], signed=True)
    return version, codec.decode(messages.record_class(topic, "coordinator-value", kind), version, value, 2)


def dump_coordinator(topic: str, offset: int, key: bytes | None, value: bytes | None) -> Text:
    """Write key and payload as the dump tool prints them."""
    try:
        number, read = key_of(topic, key or b"")
        text = compact({"type": str(number), "data": to_json(read, 0)})
        if value is None:
            return text, DELETED
        version, found = value_of(topic, number, value)
        document = to_json(found, version)
        if topic == OFFSETS and number == GROUP_KEY:
            embed(document)
        return text, compact({"version": str(version), "data": document})
    except Unknown as error:
        return f"Unknown record type {error.number} at offset {offset}, skipping.", None
    except WireError as error:
        return f"Error at offset {offset}, skipping. {error}", None


def formatted(topic: str, kinds: tuple[int, ...], key: bytes | None, value: bytes | None) -> bytes:
    """Write a record as Kafka's formatters print it, without an end of line; nothing for other kinds."""
    try:
        number, read = key_of(topic, key or b"")
        if number not in kinds:
            return b""
        document: dict[str, Any] = {"key": {"type": number, "data": to_json(read, 0)}, "value": None}
        if value is not None:
            version, found = value_of(topic, number, value)
            document["value"] = {"version": version, "data": to_json(found, version)}
    except (Unknown, WireError):
        return b""
    return compact(document).encode()


def embed(document: dict[str, Any]) -> None:
    """Replace the bytes of members' subscriptions and assignments by their decoded form."""
    import base64

    if document.get("protocolType") != "consumer":
        return
    for member in document.get("members") or ():
        for name, cls in EMBEDDED.items():
            data = base64.b64decode(member.get(name) or "")
            version = int.from_bytes(data[:2], signed=True)
            try:
                found = codec.decode_from(messages.message(cls), version, data, 2)[0]
            except (WireError, KeyError):
                continue
            member[name] = to_json(found, version)


def dump_metadata(offset: int, key: bytes | None, value: bytes | None) -> Text:
    """Write a record of the cluster's metadata, which has no key."""
    try:
        data = value or b""
        if len(data) < 3 or data[0] != 1:
            raise WireError("it is not a metadata record")
        cls = messages.record_class(METADATA, "metadata", data[1])
        found = codec.decode(cls, data[2], data, 3)
    except (WireError, KeyError) as error:
        return None, f"Error at {offset}, skipping. {error}"
    name = "".join(f"_{one}" if one.isupper() else one.upper() for one in cls.__name__).lstrip("_")
    return None, compact({"type": name, "version": data[2], "data": to_json(found, data[2])})

"""ApiVersions, versions and keys that nobody has, and bytes that are not quite a request."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.conformance.differential.case import Case, Script

KEY, VERSION, CORRELATION, CLIENT = 4, 6, 8, 12  # where the header's fields are in a frame; its length comes first
AGAIN_S = 5.0


def sized(frame: bytes) -> bytes:
    """The frame with a right length."""
    return struct.pack(">i", len(frame) - 4) + frame[4:]


def put(place: int, how: str, value: int) -> Callable[[bytes], bytes]:
    """The frame with another number at a place."""

    def changed(frame: bytes) -> bytes:
        data = bytearray(frame)
        struct.pack_into(how, data, place, value)
        return bytes(data)

    return changed


def more(data: bytes) -> Callable[[bytes], bytes]:
    return lambda frame: sized(frame + data)


def less(count: int) -> Callable[[bytes], bytes]:
    return lambda frame: sized(frame[:-count])


def bare(data: bytes) -> Callable[[bytes], bytes]:
    """These bytes instead of the request."""
    return lambda frame: data


def client_id(length: int, data: bytes = b"") -> Callable[[bytes], bytes]:
    """Another length of the client id, and what comes with it; the request ends there."""
    return lambda frame: sized(frame[:CLIENT] + struct.pack(">h", length) + data)


SOFTWARE = {
    "a-client 1.2.3": ("a-client", "1.2.3"),
    "a_client": ("a_client", "1.0"),
    "no name": ("", "1.0"),
    "no version": ("a-client", ""),
    "a space": ("a client", "1.0"),
    "a dot first": (".client", "1.0"),
    "a dot last": ("client.", "1.0"),
    "a plus": ("client", "1.0+2"),
    "a slash": ("client/x", "1.0"),
    "not ASCII": ("clíent", "1.0"),
    "one letter": ("c", "1"),
    "long": ("c" * 300, "1"),
}
API_VERSIONS = [
    Case("which keys", "ApiVersions", range(5), {"client_software_name": "a", "client_software_version": "1"}),
    *(Case(f"software: {what}", "ApiVersions", (3, 4), names) for what, names in SOFTWARE.items()),
    *(
        Case(f"version {version}", "ApiVersions", 3, wire=put(VERSION, ">h", version), answer=0)
        for version in (5, 99, 32767, -1)
    ),
    Case("version 5 with an old header", "ApiVersions", 0, wire=put(VERSION, ">h", 5), answer=0),
    Case("bytes behind", "ApiVersions", 0, wire=more(b"xx")),
    Case("no client id", "ApiVersions", 0, wire=client_id(-1)),
    Case("an empty client id", "ApiVersions", 0, wire=client_id(0)),
    Case("client id of -2 bytes", "ApiVersions", 0, wire=client_id(-2)),
    Case("client id that is cut", "ApiVersions", 0, wire=client_id(9, b"abc")),
    Case("client id that is no text", "ApiVersions", 0, wire=client_id(2, b"\xff\xfe")),
]

# Keys that the brokers of the 4 line do not answer: controllers do, older ones did, nobody does.
FOREIGN = (4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 93, 200, 32767, -1)
REFUSED = {
    "Produce": (2, 14),
    "Fetch": (3, 19),
    "ListOffsets": (0, 12),
    "Metadata": (14,),
    "CreateTopics": (1, 8),
    "DeleteTopics": (0, 7),
    "DescribeConfigs": (0, 5),
    "InitProducerId": (7,),
    "OffsetForLeaderEpoch": (1, 5),
}
KEYS = [
    *(Case(f"key {key}", "Metadata", 1, wire=put(KEY, ">h", key)) for key in FOREIGN),
    *(
        Case(f"{api} v{version}", api, 9 if api == "Produce" else 4, wire=put(VERSION, ">h", version))
        for api, versions in REFUSED.items()
        for version in versions
    ),
]

# A name of its own: one of the changed bytes allows that it is created.
METADATA = {"topics": [(bytes(16), "v")], "allow_auto_topic_creation": False}


def ask(name: str, wire: Callable[[bytes], bytes], version: int = 4) -> Case:
    return Case(name, "Metadata", version, METADATA, wire=wire, patience_s=AGAIN_S)


BYTES = [
    ask("bytes behind a request", more(b"xxxx")),
    ask("bytes behind a flexible request", more(b"xxxx"), 12),
    ask("a byte less", less(1)),
    ask("six bytes less", less(6)),
    ask("a byte less, flexible", less(1), 12),
    ask("no body", client_id(-1), 4),
    ask("a header that is cut", lambda frame: sized(frame[:10])),
    ask("a length of 0", bare(b"\0\0\0\0")),
    ask("a length of -1", bare(b"\xff\xff\xff\xff")),
    ask("a length of 2 GB", bare(b"\x7f\xff\xff\xff")),
    ask("a line of HTTP", bare(b"GET / HTTP/1.1\r\n\r\n")),
    ask("a TLS hello", bare(bytes.fromhex("16030100b1010000ad0303") + bytes(100))),
    ask("topics of -2", lambda frame: sized(frame[:26] + b"\xff\xff\xff\xfe\0")),
    ask("more topics than bytes", lambda frame: sized(frame[:26] + b"\x7f\xff\xff\xff\0")),
    ask("a name that is cut", lambda frame: sized(frame[:26] + b"\0\0\0\1\0\x09ab")),
    ask("a null name", lambda frame: sized(frame[:26] + b"\0\0\0\1\xff\xff\0")),
    ask("a name that is no text", lambda frame: sized(frame[:26] + b"\0\0\0\1\0\2\xff\xfe\0")),
    ask("an unknown tag in the header", lambda frame: sized(frame[:26] + b"\1\x63\1x" + frame[27:]), 12),
    ask("an unknown tag in the body", lambda frame: sized(frame[:-1] + b"\1\x63\1x"), 12),
    ask("a tag that is cut", lambda frame: sized(frame[:-1] + b"\1\x63\x09x"), 12),
    ask("a tag twice", lambda frame: sized(frame[:-1] + b"\2\x63\1x\x63\1x"), 12),
    ask("a varint without end", lambda frame: sized(frame[:26] + b"\0" + b"\xff" * 12), 12),
    ask("a bool of 2", lambda frame: frame[:-1] + b"\2"),
    Case("and then as ever", "Metadata", 4, METADATA),
]

SCRIPT = Script("versions", [*API_VERSIONS, *KEYS, *BYTES])

"""Headers and lengths around messages, in both directions, and requests that nobody can answer."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire import messages as m
from moldau.wire import schema
from moldau.wire.codec import decode, decode_from, encode
from moldau.wire.errors import UnsupportedRequest, WireError
from moldau.wire.frames import request_frame, request_header, response_frame, response_header
from tests.wire.message_values import EVERY, QUICK, full

REQUESTS = [(name, version) for name, version in EVERY if schema.heads()[name][0].kind == "request"]


def body(frame: bytes) -> bytes:
    (length,) = struct.unpack_from(">i", frame)
    assert length == len(frame) - 4
    return frame[4:]


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "Fähre"])
def test_a_request_is_read_as_it_was_framed(client_id: str | None) -> None:
    for name, version in REQUESTS:
        message = full(schema.message(name), version)
        data = body(request_frame(message, version, 77, client_id))
        *head, pos = request_header(memoryview(bytearray(data)))
        assert head == [message.SCHEMA.key, version, 77, client_id]
        assert decode(type(message), version, data, pos) == message


def test_a_request_header_is_the_message_of_that_name() -> None:
    for version, header_version in ((8, 1), (9, 2)):
        data = body(request_frame(m.ProduceRequest(), version, 5, "me"))
        header, pos = decode_from(m.RequestHeader, header_version, data, 0)
        assert header == m.RequestHeader(0, version, 5, "me")
        assert pos == request_header(data)[-1]


def test_a_response_is_read_as_it_was_framed() -> None:
    for name, version in REQUESTS:
        key = schema.heads()[name][0].key
        message = full(m.response_class(key).SCHEMA, version)
        data = body(b"".join(response_frame(key, version, 99, message)))
        correlation_id, pos = response_header(key, version, data)
        assert correlation_id == 99
        assert decode(type(message), version, data, pos) == message


def test_the_response_to_api_versions_never_has_a_tagged_header() -> None:
    for version in range(5):
        frame = b"".join(response_frame(18, version, 1, m.ApiVersionsResponse()))
        assert body(frame) == b"\0\0\0\1" + encode(m.ApiVersionsResponse(), version)


def test_the_length_counts_records_that_are_not_bytes() -> None:
    class Span:
        def __len__(self) -> int:
            return 5000

    partition = m.FetchResponse_PartitionData(records=Span())
    message = m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("t", partitions=[partition])])
    parts = response_frame(1, 12, 1, message)
    (length,) = struct.unpack_from(">i", parts[0])
    assert length == sum(map(len, parts)) - 4 > 5000


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    header = struct.pack(">hhih", 3, 9, 1, 2) + b"me" + b"\x01\x00\x03abc"
    assert request_header(header + b"body") == (3, 9, 1, "me", len(header))
    assert response_header(3, 9, b"\0\0\0\1" + b"\x01\x00\x03abc" + b"body") == (1, 10)


@pytest.mark.parametrize(("key", "version"), [(18, 99), (18, -1), (4, 0), (9999, 0), (-1, 3), (0, 2)])
def test_an_unknown_key_or_version_is_told_with_what_the_header_says(key: int, version: int) -> None:
    with pytest.raises(UnsupportedRequest) as caught:
        request_header(struct.pack(">hhih", key, version, 31, 2) + b"me" + b"\x00whatever")
    refused = caught.value
    assert (refused.key, refused.version, refused.correlation_id, refused.client_id) == (key, version, 31, "me")


def test_a_header_of_the_future_may_have_its_client_id_elsewhere() -> None:
    for rest in (b"\x7f\xff", b"\xff\xff", b"\x00\x02\xff\xfe"):
        with pytest.raises(UnsupportedRequest) as caught:
            request_header(struct.pack(">hhi", 18, 99, 31) + rest)
        assert caught.value.correlation_id == 31


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"\0\0\0\x09\0\0\0\1\0",
        b"\0\0\0\x09\0\0\0\1\0\5abc",
        b"\0\0\0\x09\0\0\0\1\0\1\xff\0",
    ],
)
def test_what_is_no_header_is_a_wire_error(data: bytes) -> None:
    with pytest.raises(WireError):
        request_header(data)


@QUICK
@given(st.binary(max_size=30))
def test_any_bytes_are_a_header_or_a_wire_error(data: bytes) -> None:
    for header in (lambda: request_header(data), lambda: response_header(1, 12, data)):
        with contextlib.suppress(WireError):
            assert header()[-1] <= len(data)

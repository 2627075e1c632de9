"""The codec against itself: what is written is read back; what a version cannot carry is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire import messages as m
from moldau.wire.codec import decode, decode_from, encode, encode_parts
from moldau.wire.errors import Unwritable, WireError
from tests.wire.message_values import EVERY, QUICK, ids, message


@pytest.mark.parametrize("case", EVERY, ids=ids)
def test_what_is_written_is_read_back(case: tuple[str, int]) -> None:
    name, version = case
    cls = m.message(name)

    @QUICK
    @given(message(name, version))
    def check(value: object) -> None:
        data = encode(value, version)
        assert decode(cls, version, data) == value
        assert decode(cls, version, memoryview(bytearray(data))) == value
        assert decode_from(cls, version, b"xx" + data + b"yy", 2) == (value, 2 + len(data))

    check()
    assert decode(cls, version, encode(cls(), version)) == cls()


def test_a_field_that_the_version_lacks_is_refused_unless_ignorable() -> None:
    with pytest.raises(Unwritable, match=r"(?m)v0 cannot carry validate_only$"):
        encode(m.UpdateFeaturesRequest(validate_only=True), 0)
    with pytest.raises(Unwritable, match=r"(?m)FetchRequest v4 cannot carry forgotten_topics_data$"):
        encode(m.FetchRequest(forgotten_topics_data=[m.FetchRequest_ForgottenTopic("t")]), 4)
    assert encode(m.FetchRequest(rack_id="a"), 4) == encode(m.FetchRequest(), 4)


def test_a_default_in_a_field_that_the_version_lacks_is_fine() -> None:
    assert encode(m.FetchRequest(forgotten_topics_data=[]), 4) == encode(m.FetchRequest(), 4)


def test_a_version_outside_the_table_is_refused() -> None:
    for version in (-1, 2, 14):
        with pytest.raises(WireError, match="only 3 to 13"):
            encode(m.ProduceRequest(), version)
        with pytest.raises(WireError, match="only 3 to 13"):
            decode(m.ProduceRequest, version, b"")


def test_null_is_refused_where_none_may_be() -> None:
    with pytest.raises(WireError, match="null"):
        decode(m.LeaveGroupRequest, 0, b"\xff\xff\0\0")
    with pytest.raises(WireError, match="null"):
        decode(m.LeaveGroupRequest, 4, b"\0\0\0\0")
    with pytest.raises((TypeError, AttributeError)) as caught:
        encode(m.LeaveGroupRequest(group_id=None), 4)  # pyright: ignore
    assert caught.value.__notes__ == ["while encoding LeaveGroupRequest v4"]


def test_left_over_bytes_are_refused() -> None:
    with pytest.raises(WireError, match="1 bytes left over"):
        decode(m.HeartbeatRequest, 4, encode(m.HeartbeatRequest(), 4) + b"\0")


def test_unknown_tagged_fields_are_passed_over() -> None:
    plain = encode(m.ResponseHeader(5), 1)
    assert decode(m.ResponseHeader, 1, plain[:-1] + b"\x02\x07\x03abc\xff\x01\x00") == m.ResponseHeader(5)


def test_a_tagged_field_of_a_later_version_is_passed_over() -> None:
    request = m.FetchRequest(replica_state=m.FetchRequest_ReplicaState(3, 4))
    newer = encode(request, 15)
    tags = newer[newer.rindex(b"\x01\x0d") - 1 :]
    older = encode(m.FetchRequest(), 14)
    assert decode(m.FetchRequest, 14, older[:-1] + tags) == m.FetchRequest()


def test_a_tagged_field_must_have_the_length_it_claims() -> None:
    data = encode(m.BeginTransactionRecord("name"), 0)
    assert data == b"\x01\x00\x05\x05name"
    for claimed in (b"\x04", b"\x06"):
        with pytest.raises(WireError, match=r"length|left"):
            decode(m.BeginTransactionRecord, 0, b"\x01\x00" + claimed + b"\x05name")


def test_a_struct_of_defaults_is_not_sent_as_a_tagged_field() -> None:
    partition = m.FetchResponse_PartitionData(current_leader=m.FetchResponse_LeaderIdAndEpoch())
    topics = [m.FetchResponse_FetchableTopicResponse("t", partitions=[partition])]
    plain = [m.FetchResponse_FetchableTopicResponse("t", partitions=[m.FetchResponse_PartitionData()])]
    assert encode(m.FetchResponse(responses=topics), 12) == encode(m.FetchResponse(responses=plain), 12)


def test_a_tagged_struct_marks_null_in_its_own_way() -> None:
    """Kafka's generator writes 0 and 1 there, where a struct in line has -1 and 1."""
    unset, null = m.ConsumerGroupMemberMetadataValue(), m.ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert unset.classic_member_metadata == m.ConsumerGroupMemberMetadataValue_ClassicMemberMetadata()
    assert encode(unset, 0).endswith(b"\x01\x00")
    assert encode(null, 0).endswith(b"\x01\x01\x00\x01\x00")
    assert encode(m.DescribeTopicPartitionsRequest(), 0).endswith(b"\xff\x00")


@pytest.mark.parametrize("claim", [b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x7f"], ids=["long", "wide"])
def test_a_varint_over_32_bits_is_refused(claim: bytes) -> None:
    with pytest.raises(WireError, match="varint"):
        decode(m.LeaveGroupRequest, 4, claim + b"\0" * 10)


@pytest.mark.parametrize("claim", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f", b"\xff\x01"])
def test_a_count_beyond_the_input_is_refused_before_room_is_made(claim: bytes) -> None:
    with pytest.raises(WireError, match="more elements"):
        decode(m.OffsetFetchRequest, 8, claim + bytes(20))


def test_a_string_longer_than_a_string_may_be_is_refused() -> None:
    long = m.LeaveGroupRequest(group_id="x" * 0x8000)
    with pytest.raises(Unwritable):
        encode(long, 4)
    with pytest.raises(WireError, match="too long"):
        decode(m.LeaveGroupRequest, 4, b"\x81\x80\x02" + b"x" * 0x8000 + b"\x01\0")


class Span:
    """What a log hands out instead of bytes."""

    def __len__(self) -> int:
        return 1000


def test_records_are_handed_on_as_they_are() -> None:
    span = Span()
    partitions = [m.FetchResponse_PartitionData(records=span), m.FetchResponse_PartitionData(records=b"abc")]
    message = m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("t", partitions=partitions)])
    before, first, between, second, after = encode_parts(message, 12)
    assert first is span and second == b"abc"
    assert before.endswith(b"\xe9\x07")  # 1001 as a varint
    assert between.endswith(b"\x04") and after


def test_records_are_a_view_of_the_input() -> None:
    partition = m.ProduceRequest_PartitionProduceData(0, b"batch")
    request = m.ProduceRequest(topic_data=[m.ProduceRequest_TopicProduceData("t", partition_data=[partition])])
    data = bytearray(encode(request, 9))
    records = decode(m.ProduceRequest, 9, data).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview) and records == b"batch"
    records[0:1] = b"B"
    assert b"Batch" in data


@QUICK
@given(st.integers(0, 0xFFFFFFFF))
def test_varints_are_read_as_they_were_written(value: int) -> None:
    from moldau.wire import codec_read
    from moldau.wire.numbers import uvarint

    data = uvarint(value)
    assert codec_read.uvarint(data, 0) == (value, len(data))

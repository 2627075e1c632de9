"""Error codes in responses: found wherever they are, and what may be sent again because nothing of it was done."""

from __future__ import annotations

import pytest

from moldau.client import ClientError, Outcome, check, outcomes
from moldau.client.outcomes import all_among
from moldau.wire import messages as m
from moldau.wire.errors import Error


def offset_commit(*codes: int) -> m.OffsetCommitResponse:
    rows = [m.OffsetCommitResponse_OffsetCommitResponsePartition(index, code) for index, code in enumerate(codes)]
    return m.OffsetCommitResponse(topics=[m.OffsetCommitResponse_OffsetCommitResponseTopic(name="t", partitions=rows)])


def test_a_response_as_a_whole_has_one_outcome() -> None:
    assert outcomes(m.HeartbeatResponse(error_code=25)) == [Outcome(Error.UNKNOWN_MEMBER_ID, None, "")]
    assert outcomes(m.HeartbeatResponse()) == [Outcome(Error.NONE, None, "")]


def test_each_item_has_an_outcome_and_a_name() -> None:
    assert [(o.error, o.item) for o in outcomes(offset_commit(0, 16))] == [
        (Error.NONE, "t-0"),
        (Error.NOT_COORDINATOR, "t-1"),
    ]


def test_below_a_refusal_nothing_is_looked_at() -> None:
    answer = m.LeaveGroupResponse(error_code=16, members=[m.LeaveGroupResponse_MemberResponse("a", None, 0)])
    assert [o.error for o in outcomes(answer)] == [Error.NOT_COORDINATOR]


def test_codes_under_other_names_count() -> None:
    part = m.AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult(3, 51)
    topic = m.AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult("t", [part])
    [found] = outcomes(m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic]))
    assert found.error is Error.CONCURRENT_TRANSACTIONS


def test_a_code_of_a_later_kafka_is_an_error() -> None:
    assert outcomes(m.HeartbeatResponse(error_code=9999))[0].error is Error.UNKNOWN_SERVER_ERROR


def test_a_response_without_codes_has_no_outcome() -> None:
    assert outcomes(m.ProduceResponse()) == []
    assert not all_among(m.ProduceResponse(), {Error.NONE})


def test_a_request_goes_out_again_only_if_nothing_of_it_was_done() -> None:
    moved = {Error.NOT_COORDINATOR}
    assert all_among(offset_commit(16, 16), moved)
    assert not all_among(offset_commit(16, 0), moved)
    assert not all_among(offset_commit(16, 25), moved)


def test_an_error_becomes_an_exception_with_the_answer_in_it() -> None:
    answer = offset_commit(0, 12)
    with pytest.raises(ClientError, match=r"OffsetCommit of t-1: .*OFFSET_METADATA_TOO_LARGE") as caught:
        check(answer)
    assert caught.value.answer is answer
    assert check(offset_commit(0)) == offset_commit(0)


def test_the_brokers_own_words_are_used() -> None:
    topic = m.CreateTopicsResponse_CreatableTopicResult("t", error_code=37, error_message="Too few.")
    with pytest.raises(ClientError, match=r"CreateTopics of t: Too few \(INVALID_PARTITIONS\)\."):
        check(m.CreateTopicsResponse(topics=[topic]))

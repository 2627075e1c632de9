"""A broker that has gone, or hangs, neither holds up nor hides what the others of the cluster have to say."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.admin import groups, offsets
from moldau.client import Client, ClientError
from moldau.client.deadline import Deadline
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.client.fake import Fake

NOBODY_LISTENS = 1  # a port
QUICK = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 10, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 10}
METADATA, LIST_OFFSETS, LIST_GROUPS = 3, 2, 16


def groups_of(*names: str) -> Any:
    return m.ListGroupsResponse(groups=[m.ListGroupsResponse_ListedGroup(name, group_type="classic") for name in names])


def ends_at(offset: int) -> Any:
    row = m.ListOffsetsResponse_ListOffsetsPartitionResponse(0, 0, offset=offset)
    return m.ListOffsetsResponse(topics=[m.ListOffsetsResponse_ListOffsetsTopicResponse("t", [row])])


def asked(fake: Fake, key: int) -> int:
    return sum(request.SCHEMA.key == key for request in fake.seen)


def test_all_are_asked_again_once_the_cluster_has_let_the_lost_broker_go() -> None:
    def answer(request: Any) -> Any:
        rounds = asked(fake, LIST_GROUPS)
        if request.SCHEMA.key == METADATA:  # the controller needs a moment to see it
            return fake.metadata(others={2: NOBODY_LISTENS} if rounds < 3 else {})
        return groups_of("mine", *(["taken-over"] if rounds > 3 else []))

    with Fake(answer) as fake, Client({"bootstrap.servers": fake.address, **QUICK}) as client:
        assert [one.id for one in groups.listed(client)] == ["mine", "taken-over"]


def test_one_that_hangs_takes_its_share_of_the_time_and_hides_only_its_own() -> None:
    def answer(request: Any) -> Any:
        return fake.metadata(others={2: silent.port}) if request.SCHEMA.key == METADATA else groups_of("mine")

    settings = {"default.api.timeout.ms": 1_000, **QUICK}
    with (
        Fake(lambda _: None) as silent,
        Fake(answer) as fake,
        Client({"bootstrap.servers": fake.address, **settings}) as client,
    ):
        assert [one.id for one in groups.listed(client, partial=True)] == ["mine"]
        with pytest.raises(ClientError, match="did not answer ListGroups in time") as caught:
            groups.listed(client)
        assert caught.value.error is Error.REQUEST_TIMED_OUT
        answers, lost = client.ask_each({2: m.ListGroupsRequest(), 1: m.ListGroupsRequest()}, Deadline(2))
        assert list(answers) == [1] and lost is not None


def test_offsets_are_looked_up_at_the_next_leader() -> None:
    def answer(request: Any) -> Any:
        if request.SCHEMA.key == METADATA:
            gone = asked(fake, METADATA) > 2
            return fake.metadata("t", *((1, 1) if gone else (2, 0)), others={} if gone else {2: NOBODY_LISTENS})
        return ends_at(9)

    with Fake(answer) as fake, Client({"bootstrap.servers": fake.address, **QUICK}) as client:
        assert offsets.at(client, {("t", 0): offsets.LATEST})["t", 0].offset == 9


def test_offsets_of_a_leader_that_hangs_are_told_to_be_missing() -> None:
    def answer(_: Any) -> Any:
        return fake.metadata("t", 2, others={2: silent.port})

    settings = {"default.api.timeout.ms": 500, **QUICK}
    with (
        Fake(lambda _: None) as silent,
        Fake(answer) as fake,
        Client({"bootstrap.servers": fake.address, **settings}) as client,
    ):
        found = offsets.at(client, {("t", 0): offsets.LATEST})["t", 0]
        assert found.error is Error.LEADER_NOT_AVAILABLE
        with pytest.raises(ClientError, match="did not answer ListOffsets in time"):
            offsets.list_offsets(client, {("t", 0): offsets.LATEST}, committed=False)

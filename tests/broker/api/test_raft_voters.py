"""AddRaftVoter and RemoveRaftVoter of a cluster with one node: static with kraft.version 0, dynamic with 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import World

DIRECTORY = b"d" * 16
NO_ID = bytes(16)
LISTENER = m.AddRaftVoterRequest_Listener("PLAINTEXT", "127.0.0.1", 9093)


@pytest.fixture
def dynamic(make_world: Callable[..., World]) -> World:
    world = make_world()
    update = m.UpdateFeaturesRequest_FeatureUpdateKey("kraft.version", 1)
    assert world.call(m.UpdateFeaturesRequest(feature_updates=[update])).error_code == 0
    return world


def add(world: World, voter: int = 5, directory: bytes = DIRECTORY, cluster: str | None = None, listener=LISTENER):
    listeners = [] if listener is None else [listener]
    return world.call(m.AddRaftVoterRequest(cluster, 1000, voter, directory, listeners)).error_code


def remove(world: World, voter: int = 5, directory: bytes = DIRECTORY, cluster: str | None = None):
    return world.call(m.RemoveRaftVoterRequest(cluster, voter, directory)).error_code


@pytest.mark.parametrize("change", [add, remove])
def test_a_request_must_be_meant_for_this_cluster_and_name_a_voter(world: World, change: Callable[..., int]):
    assert change(world, cluster="another") == Error.INCONSISTENT_CLUSTER_ID
    assert change(world, voter=-1) == change(world, directory=NO_ID) == Error.INVALID_REQUEST


@pytest.mark.parametrize("change", [add, remove])
def test_the_voters_of_a_static_quorum_stay(world: World, change: Callable[..., int]):
    for voter in (1, 5):
        assert change(world, voter, cluster=world.node.metadata.cluster_id) == Error.UNSUPPORTED_VERSION


def test_a_new_voter_must_have_a_listener(world: World):
    other = m.AddRaftVoterRequest_Listener("OTHER", "127.0.0.1", 9093)
    assert add(world, listener=other) == add(world, listener=None) == Error.INVALID_REQUEST


def test_this_node_votes_already_and_another_is_not_reached(dynamic: World):
    assert add(dynamic, voter=1) == Error.DUPLICATE_VOTER
    assert add(dynamic) == Error.REQUEST_TIMED_OUT


def test_neither_a_stranger_nor_the_last_voter_can_be_removed(dynamic: World):
    mine = dynamic.node.cluster.brokers[1].log_dirs[0]
    for voter, directory in ((5, DIRECTORY), (1, DIRECTORY), (1, mine)):
        assert remove(dynamic, voter, directory) == Error.VOTER_NOT_FOUND

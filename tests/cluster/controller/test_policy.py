"""Settings that elections depend on: whose counts, and what a change of min.insync.replicas brings with it."""

from __future__ import annotations

import pytest

from moldau.cluster.controller.policy import clear_eligible_leaders, policy_of
from moldau.machines.metadata.cluster import BROKER, TOPIC
from moldau.wire import messages as m
from tests.cluster.controller.images import add_topic, commit, image_of, partition

MIN_INSYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def test_a_topics_own_setting_counts_before_the_clusters_before_the_controllers() -> None:
    image = image_of()
    add_topic(image)
    policy = policy_of(image, 3, True)
    assert (policy.min_insync("t"), policy.unclean("t")) == (3, True)
    image.replay(m.ConfigRecord(BROKER, "", MIN_INSYNC, "2"))
    image.replay(m.ConfigRecord(BROKER, "", UNCLEAN, "false"))
    assert (policy.min_insync("t"), policy.unclean("t")) == (2, False)
    image.replay(m.ConfigRecord(TOPIC, "t", MIN_INSYNC, "1"))
    image.replay(m.ConfigRecord(TOPIC, "t", UNCLEAN, "True"))
    assert (policy.min_insync("t"), policy.unclean("t")) == (1, True)
    assert (policy.min_insync("other"), policy.unclean("other")) == (2, False)


@pytest.mark.parametrize(
    ("change", "cleared"),
    [
        (m.ConfigRecord(TOPIC, "t", MIN_INSYNC, "1"), ["t"]),
        (m.ConfigRecord(TOPIC, "t", MIN_INSYNC, None), ["t"]),
        (m.ConfigRecord(BROKER, "", MIN_INSYNC, "1"), [""]),
        (m.ConfigRecord(TOPIC, "t", "retention.ms", "1"), []),
        (m.TopicRecord("t"), []),
    ],
)
def test_a_change_of_min_insync_replicas_clears_who_is_eligible(change: m.ConfigRecord, cleared: list[str]) -> None:
    image = image_of()
    add_topic(image, {"isr": [1], "eligible_leader_replicas": [2]})
    records = clear_eligible_leaders(image, [change])
    assert [record.topic_name for record in records] == cleared
    commit(image, records)
    assert partition(image).eligible_leaders == (() if cleared else (2,))


def test_without_eligible_leaders_there_is_nothing_to_clear() -> None:
    change = m.ConfigRecord(TOPIC, "t", MIN_INSYNC, "1")
    assert clear_eligible_leaders(image_of(eligible=False), [change]) == []

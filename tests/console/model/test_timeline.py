"""Records of the metadata log are told as events."""

from __future__ import annotations

from typing import Any

from moldau.admin.metadata_log import Entry
from moldau.client import messages as m
from moldau.console.model.timeline import BROKER, CONTROLLER, ELECTION, EXPAND, NO_LEADER, SHRINK, Teller

ID = bytes(range(16))


def tell(teller: Teller, *records: Any) -> list[tuple[str, str, str]]:
    entries = [Entry(10 + at, 1000 * at, 7, record) for at, record in enumerate(records)]
    return [(one.kind, one.where, one.details) for one in teller.tell(entries)]


def change(**fields: Any) -> Any:
    return m.PartitionChangeRecord(0, ID, **fields)


def placed() -> Teller:
    teller = Teller()
    made = m.PartitionRecord(
        partition_id=0, topic_id=ID, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, leader_epoch=0, partition_epoch=0
    )
    assert tell(teller, m.TopicRecord("orders", ID), made) == [], "a new topic is no election"
    return teller


def test_an_election_names_both_leaders_and_the_isr_who_has_left() -> None:
    assert tell(placed(), change(leader=2, isr=[2, 3])) == [
        (ELECTION, "orders-0", "1 → 2"),
        (SHRINK, "orders-0", "without 1; in sync 2, 3"),
    ]


def test_one_change_follows_another() -> None:
    teller = placed()
    found = tell(teller, change(isr=[1, 2]), change(isr=[1, 2, 3]), change(isr=[1, 2, 3]), change(leader=-1, isr=[]))
    assert found == [
        (SHRINK, "orders-0", "without 3; in sync 1, 2"),
        (EXPAND, "orders-0", "with 3; in sync 1, 2, 3"),
        (NO_LEADER, "orders-0", "1 → nobody"),
        (SHRINK, "orders-0", "without 1, 2, 3; in sync nobody"),
    ]
    assert tell(teller, change(leader=3, isr=[3], leader_recovery_state=1)) == [
        (ELECTION, "orders-0", "nobody → 3, unclean: it was not in sync"),
        (EXPAND, "orders-0", "with 3; in sync 3"),
    ]


def test_what_was_before_the_part_that_is_read_is_not_made_up() -> None:
    teller = Teller({ID: "orders"})
    assert tell(teller, change(isr=[1, 2])) == [], "whether it has grown or shrunk is not known"
    assert tell(teller, change(leader=2, isr=[2])) == [
        (ELECTION, "orders-0", "2"),
        (SHRINK, "orders-0", "without 1; in sync 2"),
    ]


def test_brokers_and_controllers_come_and_go() -> None:
    node = m.LeaderChangeMessage(leader_id=3, voters=[], granting_voters=[])
    registered = m.RegisterBrokerRecord(broker_id=2, incarnation_id=ID, broker_epoch=5, end_points=[], features=[])
    fenced, unfenced = (m.BrokerRegistrationChangeRecord(2, 5, fenced=value) for value in (1, -1))
    stopping = m.BrokerRegistrationChangeRecord(2, 5, in_controlled_shutdown=1)
    directories = m.BrokerRegistrationChangeRecord(2, 5, log_dirs=[ID])
    assert tell(Teller(), node, registered, unfenced, stopping, fenced, directories, m.NoOpRecord()) == [
        (CONTROLLER, "node 3", "leads the quorum, epoch 7"),
        (BROKER, "broker 2", "registers"),
        (BROKER, "broker 2", "unfenced"),
        (BROKER, "broker 2", "shuts down"),
        (BROKER, "broker 2", "fenced"),
    ]
    assert tell(Teller(), m.FenceBrokerRecord(2, 5), m.UnregisterBrokerRecord(2, 5)) == [
        (BROKER, "broker 2", "fenced"),
        (BROKER, "broker 2", "is forgotten"),
    ]


def test_a_topic_whose_name_is_gone_is_called_deleted_and_is_no_link() -> None:
    [event] = Teller().tell([Entry(1, 2, 3, change(leader=2))])
    assert (event.where, event.topic) == ("deleted topic-0", None)

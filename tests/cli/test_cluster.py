"""`moldau cluster`, `moldau txn` and `moldau share` on a real broker."""

from __future__ import annotations

from moldau.client import Client, Record, TransactionalProducer, build, check, group
from moldau.client import messages as m
from tests.cli.running import Moldau


def test_the_cluster_in_numbers(moldau: Moldau) -> None:
    moldau.topic(3)
    info = moldau.json("cluster", "info")
    assert info["brokers"] == 1 and info["partitions"] >= 3
    [row] = moldau.json("cluster", "brokers")
    assert row["address"] == moldau.servers and row["controller"] and row["leaders"] >= 3
    assert moldau.servers in moldau("cluster", "brokers")
    assert moldau.json("cluster", "health")["healthy"] is True
    assert "metadata.version" in {row["feature"] for row in moldau.json("cluster", "features")}
    quorum = moldau.json("cluster", "quorum")
    assert quorum["replicas"][0]["role"] == "leader" and "high watermark" in moldau("cluster", "quorum")
    assert {"key": 3, "request": "Metadata", "from": 0, "to": 13} in moldau.json("cluster", "apis")


def test_an_open_transaction_is_seen_and_aborted(moldau: Moldau, client: Client) -> None:
    topic = moldau.topic()
    name = f"txn-{topic}"
    producer = TransactionalProducer(client, name)
    producer.send(topic, 0, build([Record(timestamp=1000, value=b"never")]))
    producer.flush()
    found = moldau.json("txn", "describe", name)
    assert found["state"] == "Ongoing" and found["partitions"] == [f"{topic}-0"]
    assert name in {row["id"] for row in moldau.json("txn", "list", "--state", "ongoing")}
    [row] = moldau.json("txn", "producers", topic)
    assert row["open_since_offset"] == 0
    assert moldau.json("txn", "hanging", "--topic", topic, "--longer-than", "0s") == []
    moldau("txn", "abort", name)
    assert moldau.json("txn", "describe", name)["state"] in ("CompleteAbort", "Empty")
    assert moldau.read(topic) == []
    producer.close()


def test_a_transaction_is_ended_where_it_hangs(moldau: Moldau, client: Client) -> None:
    topic = moldau.topic()
    producer = TransactionalProducer(client, f"hang-{topic}")
    producer.send(topic, 0, build([Record(timestamp=1000, value=b"lost")]))
    producer.flush()
    moldau("txn", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert [row["open_since_offset"] for row in moldau.json("txn", "producers", topic)] == [None]
    assert moldau.read(topic) == []
    producer.close()


def test_share_groups_are_reset_and_deleted(moldau: Moldau, client: Client) -> None:
    topic = moldau.topic()
    moldau.write(topic, *"abc")
    name = f"share-{topic}"
    member = "AAAAAAAAAAAAAAAAAAAAAA"
    joined = check(client.send(m.ShareGroupHeartbeatRequest(name, member, 0, None, [topic]), group(name)))
    assert joined.member_epoch > 0
    assert name in {row["group"] for row in moldau.json("share", "list")}
    found = moldau.json("share", "describe", name)
    assert found["state"] == "Stable" and len(found["members"]) == 1
    check(client.send(m.ShareGroupHeartbeatRequest(name, member, -1), group(name)))
    shown = moldau.run("share", "reset", name, "--to-latest", "--topic", topic)
    assert shown.code == 0 and "Nothing was changed" in shown.err
    moldau("share", "reset", name, "--to-latest", "--topic", topic, "--execute")
    [row] = moldau.json("share", "describe", name)["partitions"]
    assert row["start"] == 3
    moldau("share", "delete", name)
    assert name not in {row["group"] for row in moldau.json("share", "list")}


def test_mistakes_get_a_sentence(moldau: Moldau) -> None:
    topic = moldau.topic()
    for words, code, sentence in (
        (("txn", "describe", "nobody"), 1, "no transactional id nobody"),
        (("txn", "abort"), 2, "--start-offset"),
        (("txn", "abort", "--topic", topic, "-p", "0", "--start-offset", "5"), 1, "txn producers"),
        (("txn", "list", "--state", "odd"), 2, "Ongoing"),
        (("txn", "list", "--longer-than", "x"), 2, "duration"),
        (("share", "describe", "nobody"), 1, "no group nobody"),
        (("share", "reset", "g", "--to-earliest", "--to-latest"), 2, "one of"),
    ):
        done = moldau.run(*words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)

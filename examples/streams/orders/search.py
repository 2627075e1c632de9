"""The search sink: validated orders in an index that finds words, kept by a consumer of the topic `orders`.

Entries and offsets are written to SQLite in one transaction, so that each order is there once, whatever fails.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from orders_topics import ORDERS, VALIDATED

SCHEMA = """
create virtual table if not exists found using fts5(id, customer, product, document unindexed);
create table if not exists offsets (partition integer primary key, next integer);
"""
MOST = 100


class Index:
    def __init__(self, bootstrap_servers: str, file: str = ":memory:") -> None:
        self._database = sqlite3.connect(file, check_same_thread=False)
        self._database.executescript(SCHEMA)
        self._lock = threading.Lock()
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": "orders-search", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.subscribe([ORDERS], on_assign=self._go_on)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders to search", daemon=True)
        self._thread.start()

    def search(self, words: str) -> list[dict[str, Any]]:
        """Orders that have all the words."""
        quoted = " ".join('"' + word.replace('"', "") + '"' for word in words.split())
        if not quoted:
            return []
        with self._lock:
            query = "select document from found where found match ? order by id limit ?"
            return [json.loads(text) for (text,) in self._database.execute(query, (quoted, MOST))]

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()
        self._database.close()

    def _go_on(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._lock:
            known = dict(self._database.execute("select partition, next from offsets"))
        for one in partitions:
            one.offset = known.get(one.partition, OFFSET_BEGINNING)
        consumer.assign(partitions)

    def _run(self) -> None:
        while not self._ended.is_set():
            records = [one for one in self._consumer.consume(500, timeout=0.2) if one.error() is None]
            if records:
                self._take(records)

    def _take(self, records: list[Message]) -> None:
        with self._lock, self._database as transaction:
            for record in records:
                order = json.loads(record.value() or b"{}")
                if order.get("state") == VALIDATED:
                    transaction.execute("delete from found where id = ?", (order["id"],))
                    row = (order["id"], order["customer"], order["product"], json.dumps(order))
                    transaction.execute("insert into found values (?, ?, ?, ?)", row)
                place = (record.partition(), (record.offset() or 0) + 1)
                transaction.execute("insert or replace into offsets values (?, ?)", place)

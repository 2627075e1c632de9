"""An application whose checkpoint is not here begins where its sink stood, whatever other workers have left."""

from __future__ import annotations

import json
from pathlib import Path

from moldau.client import Client
from moldau.plan.conveyor.beginning import handed_on
from moldau.spark.sink.marker_topic import Ledger, resumed
from moldau.spark.sink.markers import TOPIC, Decision
from moldau.testing import broker

BEGAN, END = ({"t": {"0": offset}} for offset in (0, 5))


def test_a_first_batch_in_the_checkpoint_of_another_worker_is_not_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(END)}")
    with broker() as started, Client({"bootstrap.servers": started.bootstrap_servers}) as client:
        ledger = Ledger(client, TOPIC, "counts")
        ledger.catch_up()
        first = Decision("query", 0, (None,), (json.dumps(END),), str(tmp_path), began=json.dumps(BEGAN))
        ledger.decide(first)
        assert resumed(client, TOPIC, "counts") == BEGAN, "so Spark replays a first batch"
        assert handed_on(client, "counts") == handed_on(client, "counts") == END
        ledger.catch_up()
        assert ledger.decision is not None and ledger.decision.released

"""Records that are read again and again are looked at: they may be damaged."""

from pathlib import Path

from moldau.broker.partition import Partition
from tests.log.logs import NOW, TOPIC_ID, batch, create


def test_records_that_are_read_again_and_again_are_looked_at_now_and_then(tmp_path: Path) -> None:
    home, looked = Partition("t", TOPIC_ID, 0, create(tmp_path), 1), list[int]()
    home.log.on_damage = lambda log, reason: looked.append(home.rereads)
    home.log.append(batch(b"a"), 0, NOW)
    path = tmp_path / "t-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for _ in range(40):
        home.note_read(0)
    assert looked == [4, 8, 16, 32]
    home.note_read(1)
    home.note_read(0)
    assert home.rereads == 1, "somebody has read elsewhere"

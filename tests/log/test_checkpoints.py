"""The text files of a directory and of a partition."""

from pathlib import Path

import pytest

from moldau.log import checkpoints as c
from moldau.log.disk import OsDisk

DISK = OsDisk()


def test_offsets_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = f"{tmp_path}/recovery-point-offset-checkpoint"
    assert c.read_offsets(DISK, path) == {}
    c.write_offsets(DISK, path, {("a.b-c", 0): 5, ("x", 12): 2**40})
    assert Path(path).read_text() == f"0\n2\na.b-c 0 5\nx 12 {2**40}\n"
    assert c.read_offsets(DISK, path) == {("a.b-c", 0): 5, ("x", 12): 2**40}


@pytest.mark.parametrize(
    "text", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\nx\n", b"0\n1\na 0\n", b"0\n1\na b c\n", b"\xff\xfe"]
)
def test_a_damaged_checkpoint_is_named(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(text)
    with pytest.raises(c.Damaged, match="recovery-point"):
        c.read_offsets(DISK, str(path))


def test_an_empty_file_has_no_entries(tmp_path: Path) -> None:
    """Kafka makes one before it has anything to write."""
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"")
    assert c.read_epochs(DISK, str(path)) == []
    assert c.read_offsets(DISK, str(path)) == {}
    path.write_bytes(b"0\n")
    with pytest.raises(c.Damaged, match="leader-epoch"):
        c.read_epochs(DISK, str(path))


def test_partition_metadata_holds_the_topic_id(tmp_path: Path) -> None:
    path = f"{tmp_path}/partition.metadata"
    assert c.read_topic_id(DISK, path) is None
    c.write_topic_id(DISK, path, bytes(range(240, 256)))
    assert Path(path).read_text() == "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w\n"
    assert c.read_topic_id(DISK, path) == bytes(range(240, 256))
    Path(path).write_text("version: 0\n")
    with pytest.raises(c.Damaged):
        c.read_topic_id(DISK, path)


def test_properties_with_comments_are_read(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert c.read_properties(DISK, str(path)) is None
    path.write_text("#\n#Mon Jan 01\ncluster.id=abc\nnode.id = 3\n\nversion=1\n")
    assert c.read_properties(DISK, str(path)) == {"cluster.id": "abc", "node.id": "3", "version": "1"}
    c.write_properties(DISK, str(path), {"version": "1"})
    assert path.read_text() == "version=1\n"


def test_a_random_id_is_not_reserved_and_does_not_begin_like_a_flag() -> None:
    drawn = [bytes(16), bytes(15) + b"\x01", b"\xf8" + bytes(15), bytes(range(16))]
    assert c.encode_id(drawn[2]).startswith("-")
    assert c.random_id(lambda size: drawn.pop(0)) == c.encode_id(bytes(range(16)))
    assert len(c.decode_id(c.random_id())) == 16

"""`kafka-storage format` where it does not follow Kafka's: a Moldau that is alone, secrets, addresses, odd settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka.initial_voters import Voter, parse_voters, voters_record
from moldau.log.checkpoints import decode_id
from moldau.machines.metadata.checkpoints import Checkpoint, read_checkpoint
from moldau.settings.properties import read_properties
from moldau.wire import messages as m
from tests.cli.kafka.running import Done, run

CLUSTER, DIRECTORY = "4L6g3nShT-eMCtK--X86sw", "JEXY6aqzQY-32P5TStzaFg"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
CONTROLLER = "process.roles=controller\nlisteners=CONTROLLER://{}:19093\n"


def formatted(folder: Path, settings: str, *words: str, cluster: str = CLUSTER) -> Done:
    config = folder / "server.properties"
    config.write_text(f"node.id=3\nlog.dirs={folder / 'data'}\n{settings}")
    return run("kafka-storage", "format", "-t", cluster, "-c", str(config), *words)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def read(path: Path) -> Checkpoint:
    return read_checkpoint(path.read_bytes())


@pytest.mark.parametrize(
    "settings",
    [
        "",
        "listeners=PLAINTEXT://127.0.0.1:9092\n",
        "process.roles=broker,controller\nlisteners=PLAINTEXT://127.0.0.1:9092\n",
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n",
    ],
)
@pytest.mark.parametrize("words", [(), ("--no-initial-controllers",), ("--feature", "kraft.version=0")])
def test_a_moldau_that_is_alone_needs_no_quorum(tmp_path: Path, settings: str, words: tuple[str, ...]) -> None:
    done = formatted(tmp_path, settings, *words)
    assert done.code == 0, done.err
    assert done.lines()[1:] == [f"Formatting metadata directory {tmp_path / 'data'} with metadata.version 4.3-IV0."]
    assert names(tmp_path / "data") == {"meta.properties", "bootstrap.checkpoint"}
    levels = {one.name: one.feature_level for one in read(tmp_path / "data" / "bootstrap.checkpoint").records}
    assert levels["metadata.version"] == 30 and "kraft.version" not in levels


def test_a_moldau_without_process_roles_may_begin_a_dynamic_quorum(tmp_path: Path) -> None:
    assert formatted(tmp_path, "listeners=CONTROLLER://127.0.0.1:9093\n", "--standalone").code == 0
    assert read(tmp_path / "data" / SNAPSHOT).kraft_version == 1


def test_a_voter_needs_a_listener(tmp_path: Path) -> None:
    done = formatted(tmp_path, "listeners=PLAINTEXT://127.0.0.1:9092\n", "--standalone")
    assert done.code == 1 and "No controller listeners found. Add CONTROLLER://HOST:PORT to listeners" in done.err
    assert names(tmp_path) == {"server.properties"}


@pytest.mark.parametrize(
    ("host", "expected"),
    [("[::1]", "::1"), ("[::]", "localhost"), ("0.0.0.0", "localhost"), ("", "localhost"), ("example.com",) * 2],
)
def test_a_standalone_voter_is_named_as_it_is_reached(tmp_path: Path, host: str, expected: str) -> None:
    assert formatted(tmp_path, CONTROLLER.format(host), "-s").code == 0
    voters = read(tmp_path / "data" / SNAPSHOT).voters
    assert voters is not None
    (voter,) = voters.voters
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [("CONTROLLER", expected, 19093)]
    meta = read_properties(str(tmp_path / "data" / "meta.properties"))
    assert (voter.voter_id, voter.voter_directory_id) == (3, decode_id(meta["directory.id"]))


def test_no_secret_of_a_credential_is_printed(tmp_path: Path) -> None:
    done = formatted(tmp_path, "", "-S", "SCRAM-SHA-256=[name=alice,password=hunter2]")
    secrets = "salt=(hidden), storedKey=(hidden), serverKey=(hidden)"
    assert f"UserScramCredentialRecord(name='alice', mechanism=1, {secrets}, iterations=4096)" in done.out
    (credential,) = [
        one
        for one in read(tmp_path / "data" / "bootstrap.checkpoint").records
        if isinstance(one, m.UserScramCredentialRecord)
    ]
    assert credential.name == "alice" and len(credential.salt) == 32


@pytest.mark.parametrize("argument", ["[name=a,password=]", "[name=,password=b]", "[name=a,salt=,saltedpassword=]"])
def test_an_empty_name_or_password_is_refused(tmp_path: Path, argument: str) -> None:
    done = formatted(tmp_path, "", "-S", f"SCRAM-SHA-256={argument}")
    assert done.code == 1 and "empty" in done.err
    assert names(tmp_path) == {"server.properties"}


@pytest.mark.parametrize("cluster", ["", " ", "two words", "a\\b", "a\nb", "é"])
def test_an_id_that_a_properties_file_would_change_is_refused(tmp_path: Path, cluster: str) -> None:
    done = formatted(tmp_path, "", cluster=cluster)
    assert done.code == 1 and "cannot be the id of a cluster" in done.err
    assert names(tmp_path) == {"server.properties"}


def test_the_id_of_an_old_cluster_may_be_any_word(tmp_path: Path) -> None:
    assert formatted(tmp_path, "", cluster="prod=eu:1").code == 0
    assert read_properties(str(tmp_path / "data" / "meta.properties"))["cluster.id"] == "prod=eu:1"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("node.id=x\n", "node.id is x"),
        ("node.id=-1\n", "node.id is -1"),
        ("listeners=CONTROLLER//h:1\n", "A listener is written NAME://HOST:PORT"),
    ],
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, settings: str, reason: str) -> None:
    done = formatted(tmp_path, settings)
    assert done.code == 1 and reason in done.err


def test_a_directory_is_complete_when_it_has_its_owner(tmp_path: Path) -> None:
    """What a run that was cut short has left is written again."""
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    (tmp_path / "data" / SNAPSHOT).write_bytes(b"cut short")
    (tmp_path / "data" / "bootstrap.checkpoint").write_bytes(b"")
    assert formatted(tmp_path, CONTROLLER.format(""), "-s").code == 0
    assert names(tmp_path / "data") == {"meta.properties", "bootstrap.checkpoint", SNAPSHOT}
    assert read(tmp_path / "data" / SNAPSHOT).voters is not None
    assert read(tmp_path / "data" / "bootstrap.checkpoint").records


def test_the_last_release_is_the_newest_that_this_broker_knows(tmp_path: Path) -> None:
    done = formatted(tmp_path, "unstable.feature.versions.enable=true\n")
    assert done.code == 0 and "with metadata.version 4.3-IV0." in done.out


def test_voters_are_written_in_the_order_of_javas_map() -> None:
    voters = parse_voters(",".join(f"{node}@h:1:{DIRECTORY}" for node in (33, 5, 16, 2)))
    assert list(voters) == [2, 5, 16, 33] and voters[5] == Voter(5, "h", 1, decode_id(DIRECTORY))
    assert [one.voter_id for one in voters_record(voters.values(), "C").voters] == [16, 33, 2, 5]

"""What a controller remembers of its votes."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.quorum import Quorum
from moldau.cluster.elections import Election, election_text
from moldau.cluster.voters import Voters
from tests.simulation.disk import Machine, SimDisk
from tests.simulation.media import Folder

PATH = "/disk/__cluster_metadata-0"


def test_a_vote_that_is_read_at_a_start_survives_lost_power() -> None:
    """The last process died between the renaming of the file and the sync of the folder."""
    machine = Machine(Random(1), lambda: 0, Counter())
    disk = SimDisk(machine)
    disk.mkdir(PATH)
    machine.root.sync_all()
    election = Election(7, -1, 3)
    disk.write_atomic(f"{PATH}/quorum-state", election_text(election, Voters(())).encode(), sync=False)
    quorum = cast("Any", object.__new__(Quorum))
    log = SimpleNamespace(path=PATH)
    quorum.node = SimpleNamespace(disk=disk, metadata=SimpleNamespace(log=log))
    assert quorum.load_state() == election
    folder = machine.find(PATH)
    assert isinstance(folder, Folder)
    assert folder.safe["quorum-state"].safe == disk.read(f"{PATH}/quorum-state")  # type: ignore[union-attr]

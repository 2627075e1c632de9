"""What a controller remembers of elections: the epoch, who leads it, whom it voted for. It is in `quorum-state`.

The file is one line of JSON, written and synced before a vote is asked for or given. Version 0 belongs to
kraft.version 0, where voters have no directories.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, NamedTuple, cast

from moldau.cluster.voters import ANY_DIRECTORY, Key, Voters

NOBODY = -1


class Election(NamedTuple):
    """An epoch, its leader if there is one, and the vote that was given in it."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory: bytes = ANY_DIRECTORY

    @property
    def voted(self) -> Key | None:
        return None if self.voted_id == NOBODY else (self.voted_id, self.voted_directory)


class UnreadableElection(Exception):
    """The text is not that of a quorum-state file."""


def election_text(election: Election, voters: Voters) -> str:
    """Return the text of the file, under the voters' kraft.version."""
    fields: dict[str, Any] = {
        "leaderId": election.leader_id,
        "leaderEpoch": election.epoch,
        "votedId": election.voted_id,
    }
    if voters.is_dynamic:
        directory = urlsafe_b64encode(election.voted_directory).decode().rstrip("=")
        return json.dumps(fields | {"votedDirectoryId": directory, "data_version": 1}, separators=(",", ":"))
    members = [{"voterId": one.id} for one in voters.members]
    more = {"appliedOffset": 0, "currentVoters": members, "data_version": 0}
    return json.dumps({"clusterId": ""} | fields | more, separators=(",", ":"))


def read_election(text: str) -> Election:
    """Return what the file says; raises UnreadableElection."""
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        directory = urlsafe_b64decode(fields.get("votedDirectoryId", "AAAAAAAAAAAAAAAAAAAAAA") + "==")
        found = Election(int(fields["leaderEpoch"]), int(fields["leaderId"]), int(fields["votedId"]), directory)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableElection(f"not a quorum state: {error}") from None
    if len(directory) != 16 or found.epoch < 0:
        raise UnreadableElection("not a quorum state: the directory or the epoch is impossible")
    return found


class Ballot:
    """The votes of one election, or the pre-votes of one round, among the voters of its beginning."""

    __slots__ = ("granted", "majority", "refused", "voters")

    def __init__(self, voters: Voters, mine: Key) -> None:
        self.voters = {one.id for one in voters.members}
        self.majority = voters.majority
        self.granted: set[int] = {mine[0]} if voters.has(mine) else set()
        self.refused: set[int] = set()

    @property
    def open(self) -> set[int]:
        """Return who has not answered."""
        return self.voters - self.granted - self.refused

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.majority

    @property
    def is_lost(self) -> bool:
        return len(self.granted) + len(self.open) < self.majority

    def count(self, voter_id: int | str, granted: bool) -> None:
        if isinstance(voter_id, int) and voter_id in self.open:
            (self.granted if granted else self.refused).add(voter_id)

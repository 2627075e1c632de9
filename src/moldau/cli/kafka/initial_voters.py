"""The voters with which a dynamic quorum begins (KIP-853), written ID@HOST:PORT:DIRECTORY and separated by commas."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import NamedTuple

from moldau.cli.kafka.running import Terse
from moldau.cli.kafka.storage_settings import HOST_IF_NONE
from moldau.machines.metadata.checkpoints import DYNAMIC_VOTERS
from moldau.wire import messages as m
from moldau.wire.numbers import hash_order

MOST_ID, MOST_PORT = 2**31 - 1, 2**16 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


class Voter(NamedTuple):
    """A controller that votes: its id, where the others reach it, and the id of its metadata directory."""

    id: int
    host: str
    port: int
    directory: bytes


def parse_voters(text: str) -> dict[int, Voter]:
    """Parse a list of voters, by id in ascending order."""
    voters = [parse_voter(part.strip()) for part in text.strip().split(",") if part]
    if not voters:
        raise Terse("No voters given.")
    found: dict[int, Voter] = {}
    for voter in voters:
        if voter.id in found:
            raise Terse(f"Node id {voter.id} was specified more than once.")
        found[voter.id] = voter
    return dict(sorted(found.items()))


def parse_voter(text: str) -> Voter:
    """Parse one voter. The checks are Kafka's, in its order."""
    node, at, address = text.partition("@")
    if not at:
        raise Terse("No @ found in dynamic voter string.")
    if not node:
        raise Terse("Invalid @ at beginning of dynamic voter string.")
    number = _integer(node, "node id")
    if number < 0:
        raise Terse(f"Invalid negative node id {number} in dynamic voter string.")
    host, rest = _host(address)
    port, colon, directory = rest.partition(":")
    if not colon:
        raise Terse("No colon following port could be found.")
    place = _integer(port, "port")
    if not 0 <= place <= MOST_PORT:
        raise Terse(f"Invalid port {place} in dynamic voter string.")
    if not _ID.fullmatch(directory):
        raise Terse("Failed to parse directory ID in dynamic voter string.")
    return Voter(number, host or HOST_IF_NONE, place, base64.urlsafe_b64decode(directory[:22] + "=="))


def _integer(text: str, what: str) -> int:
    if not _INTEGER.fullmatch(text) or not -MOST_ID - 1 <= int(text) <= MOST_ID:
        raise Terse(f"Failed to parse {what} in dynamic voter string.")
    return int(text)


def _host(address: str) -> tuple[str, str]:
    """Split a host, which is in brackets if it has colons, from what follows the colon after it."""
    if not address:
        raise Terse("No hostname found after node id.")
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket:
            raise Terse("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise Terse("Port section must start with a colon.")
        return host, rest[1:]
    host, colon, rest = address.partition(":")
    if not colon:
        raise Terse("No colon following hostname could be found.")
    return host, rest


def voters_record(voters: Iterable[Voter], listener: str) -> m.VotersRecord:
    """Make the record that names the voters, in the order in which Kafka writes them."""
    levels = m.VotersRecord_KRaftVersionFeature(0, DYNAMIC_VOTERS)
    rows: list[m.VotersRecord_Voter] = []
    for voter in hash_order(voters, lambda one: one.id):
        endpoint = m.VotersRecord_Endpoint(listener, voter.host, voter.port)
        rows.append(m.VotersRecord_Voter(voter.id, voter.directory, [endpoint], levels))
    return m.VotersRecord(0, rows)

"""Voters of the metadata quorum: added and removed (KIP-853), and what the files of a new one say of it."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.admin import TIMEOUT_MS
from moldau.admin.mistakes import Mistake
from moldau.client import Client, check
from moldau.client import messages as m
from moldau.settings import SettingError, read_properties

ENDPOINT = re.compile(r"([A-Za-z0-9_.-]+)://(?:\[([^\]]*)\]|([^:/\[\]]*)):([0-9]{1,5})")
IS_IT_ONE = "Is this a valid controller configuration file?"
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a voter."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller: its id, the id of the directory with its metadata, and where it listens."""

    id: int
    directory_id: bytes
    endpoints: tuple[Endpoint, ...]


def add(client: Client, voter: Voter) -> None:
    """Let a controller vote, which must have caught up as an observer; ClientError if the quorum refuses."""
    listeners = [m.AddRaftVoterRequest_Listener(one.name, one.host, one.port) for one in voter.endpoints]
    cluster_id = client.refresh().id
    check(client.send(m.AddRaftVoterRequest(cluster_id, TIMEOUT_MS, voter.id, voter.directory_id, listeners)))


def remove(client: Client, voter: int, directory_id: bytes) -> None:
    """Take the vote from a controller; ClientError if the quorum refuses."""
    check(client.send(m.RemoveRaftVoterRequest(client.refresh().id, voter, directory_id)))


def of_settings(settings: Mapping[str, str]) -> Voter:
    """Read a controller from its file of settings, and its directory's id from the disk; Mistake with a sentence."""
    return Voter(_id(settings), directory_id(_directory(settings)), tuple(_endpoints(settings)))


def directory_id(path: str) -> bytes:
    """Return the id of a directory that was formatted."""
    try:
        known = read_properties(os.path.join(path, "meta.properties"))
    except (OSError, SettingError):
        raise Mistake(f"Unable to read meta.properties from {path}") from None
    if "directory.id" not in known:
        raise Mistake(f"No directory id found in {path}")
    return id_of(known["directory.id"])


def id_of(text: str) -> bytes:
    """Read an id as Kafka writes it: 22 characters of URL-safe base64."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != ID_BYTES:
        raise Mistake(f"{text!r} is not an id: that is 16 bytes in URL-safe base64, 22 characters.")
    return raw


def endpoint_of(text: str) -> Endpoint:
    """Read NAME://HOST:PORT; without a host it is this machine."""
    match = ENDPOINT.fullmatch(text.strip())
    if not match:
        raise Mistake(f"{text!r} is not a listener: it is written NAME://HOST:PORT.")
    return Endpoint(match[1].upper(), match[2] or match[3] or "localhost", int(match[4]))


def _id(settings: Mapping[str, str]) -> int:
    if "node.id" not in settings:
        raise Mistake(f"node.id not found in configuration file. {IS_IT_ONE}")
    if not re.fullmatch(r"[+-]?\d+", settings["node.id"]):
        raise Mistake(f'For input string: "{settings["node.id"]}"')
    if int(settings["node.id"]) < 0:
        raise Mistake(f"node.id was negative in configuration file. {IS_IT_ONE}")
    if "controller" not in settings.get("process.roles", ""):
        raise Mistake(f"process.roles did not contain 'controller' in configuration file. {IS_IT_ONE}")
    return int(settings["node.id"])


def _directory(settings: Mapping[str, str]) -> str:
    if "metadata.log.dir" in settings:
        return settings["metadata.log.dir"]
    if "log.dirs" in settings:
        return settings["log.dirs"].strip().split(",")[0]
    raise Mistake(f"Neither metadata.log.dir nor log.dirs were found. {IS_IT_ONE}")


def _endpoints(settings: Mapping[str, str]) -> list[Endpoint]:
    texts = [settings.get(name, "") for name in ("listeners", "advertised.listeners")]
    known = {one.name: one for one in map(endpoint_of, filter(None, ",".join(texts).split(",")))}
    if "controller.listener.names" not in settings:
        raise Mistake(f"controller.listener.names was not found. {IS_IT_ONE}")
    names = [name.strip().upper() for name in settings["controller.listener.names"].split(",")]
    for name in names:
        if name not in known:
            raise Mistake(f"Cannot find information about controller listener name: {name}")
    return [known[name] for name in names]

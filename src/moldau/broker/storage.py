"""Starting on what the data directories hold: who they belong to, and the metadata log among them."""

from __future__ import annotations

import base64
import errno
from typing import TYPE_CHECKING

from moldau.broker.metadata import CONFIG, TOPIC, TOPIC_ID
from moldau.log.checkpoints import Damaged, random_id
from moldau.log.directory import Directory, InUse, Meta
from moldau.log.disk import Files
from moldau.log.log import Log
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node


class StartError(Exception):
    """The broker cannot start; the text is a sentence that says what to do."""


def explain(node: Node, error: Exception) -> StartError:
    """Explain in a sentence why the node cannot start from what it found."""
    if isinstance(error, StartError):
        return error
    if isinstance(error, Refused):
        return StartError(f"The broker cannot write what a start needs. {error.message}")
    path = node.metadata.log.path
    if isinstance(error, OSError):
        todo = "Make room on the disk." if error.errno == errno.ENOSPC else "Check the disk."
        return StartError(f"The cluster's metadata in {path} cannot be read or written: {error.strerror}. {todo}")
    return StartError(f"The cluster's metadata in {path} is damaged: {error}. Restore the folder from a copy.")


def open_directories(node: Node, may_begin: bool) -> list[Directory]:
    """Lock every directory of log.dirs and make sure that it belongs to this node, which may begin a new cluster."""
    files = Files(node.disk)
    directories = [Directory(files, path) for path in node.settings["log.dirs"]]
    try:
        for directory in directories:
            directory.open()
        claim(node, [d for d in directories if d.offline is None], may_begin)
    except (InUse, Damaged, OSError, StartError) as error:
        for directory in directories:
            directory.release_lock()
        raise StartError(str(error)) from None
    return directories


def claim(node: Node, directories: list[Directory], may_begin: bool) -> None:
    """Read or write meta.properties; a directory of another node or cluster is refused."""
    metas = [directory.read_meta() for directory in directories]
    known = {meta.cluster_id for meta in metas if meta and meta.cluster_id}
    if len(known) > 1:
        raise StartError(f"The data directories belong to different clusters: {', '.join(sorted(known))}.")
    if not known and not may_begin:
        which = ", ".join(directory.path for directory in directories)
        how = "kafka-storage format -t CLUSTER_ID -c FILE"
        raise StartError(f"{which} is not formatted. This node joins a cluster: run {how} first.")
    node.metadata.cluster_id = known.pop() if known else random_id(node.random.randbytes)
    for directory, meta in zip(directories, metas, strict=True):
        if meta and meta.node_id not in (None, node.id):
            problem = f"{directory.path} belongs to node {meta.node_id}, and this is node {node.id}: set node.id."
            raise StartError(problem)
        directory.id = (meta and meta.directory_id) or random_id(node.random.randbytes)
        if meta is None or None in (meta.cluster_id, meta.node_id, meta.directory_id):
            directory.write_meta(Meta(node.metadata.cluster_id, node.id, directory.id))


def id_bytes(text: str) -> bytes:
    """Return an id of meta.properties as it stands in metadata records."""
    return base64.urlsafe_b64decode(text + "==") if text else bytes(16)


def open_metadata_log(node: Node) -> Log:
    """Open the log of the metadata, in metadata.log.dir or in the first of log.dirs."""
    path = node.settings["metadata.log.dir"]
    home = next((d for d in node.replicas.directories if d.path == path), node.replicas.directories[0])
    node.metadata.directory_id = id_bytes(home.id)
    if home.offline is not None:
        raise StartError(f"{home.offline} It holds the cluster's metadata.")
    now = node.clock.wall_ms()
    try:
        if (TOPIC, 0) in home.found:
            log = home.load(TOPIC, 0, CONFIG, now_ms=now)
        else:
            log = home.create(TOPIC, 0, CONFIG, topic_id=TOPIC_ID, now_ms=now)
    except Refused as refused:
        raise StartError(f"The cluster's metadata cannot be opened: {refused.message}") from refused
    if log.offline is not None:
        raise StartError(f"The cluster's metadata cannot be read: {log.offline}")
    return log

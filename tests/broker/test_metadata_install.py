"""A snapshot that the quorum sends."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from moldau.log.disk import OsDisk
from moldau.machines.metadata.checkpoints import checkpoint

from .conftest import World


def test_a_snapshot_for_which_there_is_no_room_is_fetched_again(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    metadata, before = world.node.metadata, world.node.metadata.applied

    def full(self: OsDisk, path: str, data: bytes, *, sync: bool = True) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    with monkeypatch.context() as patched:
        patched.setattr(OsDisk, "write_atomic", full)
        metadata.install(before + 100, 1, checkpoint([], [], 0, 1))
    assert metadata.applied == before

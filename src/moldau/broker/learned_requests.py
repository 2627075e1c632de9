"""Requests that are known by how they begin.

A client says the same again and again: all that stands before the records of a produce request, or before the offsets
of a commit, is the same in request after request. So once a handler has served such a request, its head is kept with
what it means; a request that begins with the same bytes is served from that without being decoded, for a fraction of
the cost. The heads of Produce are learnt in api/produce_one.py, those of OffsetCommit in api/commit_one.py.

What was learnt is forgotten whenever the metadata changes. Whatever is unusual returns None before anything is changed,
and goes the way of the handlers. Tests compare the answers of both ways byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Protocol

from moldau.wire.errors import WireError

if TYPE_CHECKING:
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node
    from moldau.broker.quotas import Account
    from moldau.broker.wait import Wait
    from moldau.machines.metadata.authorizer import Authorizer

START = Struct(">ii")  # key and version, correlation id
HEAD_START = 8
HEADS = 4096  # that are kept, for each key and version
HEAD_ENDS = 32  # that are tried, for each connection: one for each length of a head

_start = START.unpack_from


class Known(Protocol):
    """What a head means; equal to nothing but itself."""

    @property
    def key(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def asks(self) -> tuple[Ask, ...]:
        """What the client must be allowed to do."""
        ...

    def measure(self, frame: memoryview, end: int) -> int:
        """Return the bytes of records of a request whose head ends at `end`: a quota may count them."""
        ...

    def serve(self, node: Node, frame: memoryview, end: int, correlation_id: int) -> bytes | Wait | None:
        """Answer a request whose head ends at `end`, or return a Wait, or None.

        May raise StructError, IndexError or WireError.
        """
        ...


Ask = tuple[int, int, str]  # an operation on a resource: its type and its name
Heads = dict[int, dict[bytes, Known]]  # by key and version


def serve(node: Node, connection: Connection, frame: memoryview) -> bytes | Wait | None:
    """Answer a request by its head, or None."""
    account, size = None, 0
    try:
        api, correlation_id = _start(frame)
        heads = node.heads.get(api)
        if heads is None:
            return None
        for end in connection.head_ends:
            known = heads.get(frame[HEAD_START:end].tobytes())
            if known is None:
                continue
            authorizer = node.authorizer
            if authorizer is not None or node.quotas is not None:
                changes = 0 if authorizer is None else authorizer.acls.changes
                if connection.cleared_for is not node.heads or connection.cleared_at != changes:
                    connection.cleared.clear()
                    connection.cleared_for, connection.cleared_at = node.heads, changes
                try:
                    account = connection.cleared[known]
                except KeyError:
                    if not is_allowed(authorizer, connection, known):
                        return None
                    account = clear(node, connection, known)
                if account is not None and not account.admits(size := known.measure(frame, end)):
                    return None  # the answer says for how long the client is throttled
            answer = known.serve(node, frame, end, correlation_id)
            if answer is not None:
                connection.client_id = known.client_id
                node.request_counts[known.key] += 1
                return answer
            break
    except (StructError, IndexError, WireError):
        pass
    if size and account is not None:
        account.take_back(size)
    return None


def is_allowed(authorizer: Authorizer | None, connection: Connection, known: Known) -> bool:
    """Tell whether a client may send such requests; asked for each connection, for heads are shared by them."""
    return authorizer is None or all(
        authorizer.allows(connection.principal, connection.host, *ask) for ask in known.asks
    )


def clear(node: Node, connection: Connection, known: Known) -> Account | None:
    """Remember that a client may, and what measures it, as long as the head is known: until the metadata changes."""
    account = None if node.quotas is None else node.quotas.account(connection, known.client_id)
    if len(connection.cleared) >= HEADS:
        connection.cleared.clear()
    connection.cleared[known] = account
    return account


def keep(node: Node, connection: Connection, frame: memoryview, end: int, make: Callable[[], Known]) -> None:
    """Remember the head of a request, up to `end`, to serve requests that begin alike."""
    heads = node.heads.setdefault(_start(frame)[0], {})
    head = frame[HEAD_START:end].tobytes()
    if head not in heads:
        if len(heads) >= HEADS:
            heads.clear()
        heads[head] = make()
    if end not in connection.head_ends:
        connection.head_ends = (end, *connection.head_ends)[:HEAD_ENDS]

"""How nodes are connected: the functions that hand a record to the next ones, made once for a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from moldau.operators.context import Context, Operator, Shard, TopologyError
from moldau.operators.errors import Failure, StreamsError
from moldau.operators.record import Record

Entry = Callable[[Record], None]
Refuse = Callable[[Failure, Exception], None]  # raises if the application is to end


def entry_of(operator: Operator, context: Context, shard: Shard, stateful: bool, refuse: Refuse | None) -> Entry:
    """How a record enters a node. One with stores is what their changelog and cache name as their cause; one whose
    errors may be passed over is watched.
    """
    enter = operator.process
    if stateful:
        enter = remembered(enter, shard)
    if refuse is not None:
        enter = watched(enter, context, shard, refuse)
    return enter


def remembered(process: Entry, shard: Shard) -> Entry:
    def enter(record: Record) -> None:
        before = shard.record
        shard.record = record
        process(record)
        shard.record = before

    return enter


def watched(process: Entry, context: Context, shard: Shard, refuse: Refuse) -> Entry:
    def enter(record: Record) -> None:
        before = shard.record
        try:
            process(record)
        except StreamsError:  # of a node below, and decided there
            raise
        except Exception as error:
            shard.record = before  # the node above goes on with its own
            return refuse(context.failure("processing", error, record), error)

    return enter


def connect(context: Context, children: Sequence[tuple[str, Entry]]) -> None:
    """Gives a node's context its ways out, in the order in which the children were added."""
    if not children:
        return
    entries = tuple(entry for _, entry in children)
    if len(entries) == 1:
        context.emit = entries[0]
    elif len(entries) == 2:
        context.emit = to_both(*entries)
    else:
        context.emit = to_all(entries)
    context.forward = forward(context, dict(children))


def to_both(first: Entry, second: Entry) -> Entry:
    def emit(record: Record) -> None:
        first(record)
        second(record)

    return emit


def to_all(entries: tuple[Entry, ...]) -> Entry:
    def emit(record: Record) -> None:
        for entry in entries:
            entry(record)

    return emit


def forward(context: Context, children: dict[str, Entry]) -> Callable[..., None]:
    everywhere = context.emit

    def emit(record: Record, child: str | None = None) -> None:
        if child is None:
            everywhere(record)
        elif child in children:
            children[child](record)
        else:
            known = ", ".join(children)
            raise TopologyError(f"{context.name} has no child {child!r}: forward to one of {known}, or to all")

    return emit


def failing_node(error: BaseException, owners: dict[int, str]) -> str | None:
    """The node whose operator was at work when the error was raised: the innermost one of the traceback."""
    found = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        found = owners.get(id(step.tb_frame.f_locals.get("self")), found)
        step = step.tb_next
    return found

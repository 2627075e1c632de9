"""How nodes are connected: the functions that pass a record to the next nodes, made once for a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from moldau.operators.context import Context, Operator, Shard, TopologyError
from moldau.operators.errors import Failure, StreamsError
from moldau.operators.record import Record

Entry = Callable[[Record], None]
Refuse = Callable[[Failure, Exception], None]  # raises if the application is to end


def entry_of(operator: Operator, context: Context, shard: Shard, stateful: bool, refuse: Refuse | None) -> Entry:
    """Return how a record enters a node. In a node with stores it becomes the cause of their changes; if errors may be
    ignored, they are caught here.
    """
    enter = operator.process
    if stateful:
        enter = setting_cause(enter, shard)
    if refuse is not None:
        enter = catching(enter, context, shard, refuse)
    return enter


def setting_cause(process: Entry, shard: Shard) -> Entry:
    def enter(record: Record) -> None:
        before = shard.record
        shard.record = record
        process(record)
        shard.record = before

    return enter


def catching(process: Entry, context: Context, shard: Shard, refuse: Refuse) -> Entry:
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
    """Connect a node's context with its children, in the order in which they were added."""
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
    """Return the node whose operator raised the error: the innermost one of the traceback."""
    found = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        found = owners.get(id(step.tb_frame.f_locals.get("self")), found)
        step = step.tb_next
    return found

"""Java's TreeSet, because texts that Kafka prints depend on its order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Branch(Generic[T]):
    """A node of a TreeSet; `sides` are the lesser and the greater branch."""

    __slots__ = ("above", "item", "red", "sides")

    def __init__(self, item: T, above: Branch[T] | None) -> None:
        self.item, self.above, self.red = item, above, True
        self.sides: list[Branch[T] | None] = [None, None]

    @property
    def side(self) -> int:
        assert self.above is not None
        return int(self.above.sides[1] is self)


class TreeSet(Generic[T]):
    """A red-black tree. Kafka's nodes change their rank after they were added, so the order depends on how the tree
    grew: a sorted list would not do.
    """

    def __init__(self, less: Callable[[T, T], bool]) -> None:
        self.less = less
        self.root: Branch[T] | None = None

    def __iter__(self) -> Iterator[T]:
        yield from self._walk(self.root)

    def _walk(self, branch: Branch[T] | None) -> Iterator[T]:
        if branch is not None:
            yield from self._walk(branch.sides[0])
            yield branch.item
            yield from self._walk(branch.sides[1])

    def add(self, item: T) -> None:
        above, below, side = None, self.root, 0
        while below is not None:
            if below.item is item:
                return
            above, side = below, int(not self.less(item, below.item))
            below = below.sides[side]
        made = Branch(item, above)
        if above is None:
            self.root = made
        else:
            above.sides[side] = made
        self._balance(made)

    def _balance(self, branch: Branch[T]) -> None:
        while branch.above is not None and branch.above.red:
            parent = branch.above
            grand = parent.above
            assert grand is not None
            side = parent.side
            uncle = grand.sides[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grand.red = True
                branch = grand
                continue
            if branch.side != side:
                branch = parent
                self._rotate(branch, side)
                parent = branch.above
                assert parent is not None
            parent.red, grand.red = False, True
            self._rotate(grand, 1 - side)
        assert self.root is not None
        self.root.red = False

    def _rotate(self, branch: Branch[T], side: int) -> None:
        """Move the branch down to that side, and its child of the other side up."""
        up, above = branch.sides[1 - side], branch.above
        assert up is not None
        inner = up.sides[side]
        branch.sides[1 - side] = inner
        if inner is not None:
            inner.above = branch
        up.above = above
        if above is None:
            self.root = up
        else:
            above.sides[branch.side] = up
        up.sides[side] = branch
        branch.above = up

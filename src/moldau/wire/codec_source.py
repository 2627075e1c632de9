"""Python source in the making, for the functions that read and write messages.

Fixed-width values that follow each other on the wire gather in a run, so that one struct call moves them all.
The first byte of a length belongs to a run too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from struct import Struct as Packer
from typing import Any

from moldau.wire import messages
from moldau.wire.schema import FIXED, Field, Message, Struct

LONGEST_STRING = 0x7FFF


class Source:
    """Lines of one function `f`, the objects that they name, and the run that is not yet written out."""

    __slots__ = ("counts", "depth", "flexible", "lines", "run", "scope", "signature", "variables", "version")

    def __init__(
        self, signature: str, scope: dict[str, Any], version: int, flexible: bool, counts: bool = False
    ) -> None:
        self.signature = signature
        self.scope = scope
        self.version = version
        self.flexible = flexible
        self.counts = counts
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []  # struct codes, and what each is read into or written from
        self.depth = 1
        self.variables = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def under(self, opening: str) -> Generator[None]:
        """Indent what is emitted within under a line such as `if x:`."""
        self.line(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def variable(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    def name(self, value: Any, prefix: str = "g") -> str:
        """Return a global name for an object that the source refers to."""
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def cut(self) -> tuple[Packer, list[str]] | None:
        """End the run; return what packs or unpacks it, and its expressions."""
        if not self.run:
            return None
        packer = Packer(">" + "".join(code for code, _ in self.run))
        parts = [part for _, part in self.run if part]
        self.run.clear()
        return packer, parts

    def compile(self, title: str) -> Callable[..., Any]:
        text = "\n".join([f"def f({self.signature}):", *self.lines])
        exec(compile(text, f"<{title} v{self.version}>", "exec"), self.scope)
        return self.scope["f"]


def class_of(owner: Message | Struct) -> type[Any]:
    return getattr(messages, owner.name)


def split(owner: Message | Struct, version: int) -> tuple[list[Field], list[Field], list[Field]]:
    """Return the fields of a struct in a version: those in line, those that are tagged, those it lacks."""
    here = [f for f in owner.fields if f.at(version)]
    plain = [f for f in here if f.tag is None]
    tagged = sorted((f for f in here if f.tag is not None), key=lambda f: f.tag or 0)
    return plain, tagged, [f for f in owner.fields if not f.at(version)]


def least_size(kind: str, field: Field, version: int, flexible: bool) -> int:
    """Return the fewest bytes that a value can take, by which a claimed count is checked."""
    if kind in FIXED:
        return Packer(">" + FIXED[kind]).size
    if field.struct is None or kind.startswith("[]"):
        return 1 if flexible else 2 if kind == "string" else 4
    if not field.is_array and field.nullable_at(version):
        return 1
    plain, _, _ = split(field.struct, version)
    return sum(least_size(f.type, f, version, flexible) for f in plain) + flexible

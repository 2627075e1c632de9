"""Write `messages.pyi` from the table: `python -m moldau.wire.stubs`.

The classes of `messages` exist only at run time; this file lets a type checker and an editor know them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moldau.wire import schema
from moldau.wire.schema import Field, Message, Struct

TYPES = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "bytes", "records": "Records"}
OPENING = '''"""Written by `python -m moldau.wire.stubs` from the message table; do not edit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from moldau.wire.schema import Message, Struct

Records = Any  # decoded as a memoryview; to be encoded, anything with a length

def names() -> list[str]: ...
def message(name: str) -> type[Any]: ...
def request_class(key: int) -> type[Any]: ...
def response_class(key: int) -> type[Any]: ...
def record_class(topic: str, kind: str, number: int) -> type[Any]: ...
'''


def stub() -> str:
    """The text of the stub file."""
    specs = [schema.message(name) for name in schema.heads()]
    owners: list[Message | Struct] = [owner for spec in specs for owner in (*spec.structs, spec)]
    return OPENING + "".join("\n" + "\n".join(_class(o)) + "\n" for o in owners)


def _class(owner: Message | Struct) -> Iterator[str]:
    yield "@dataclass(slots=True)"
    yield f"class {owner.name}:"
    yield f"    SCHEMA: ClassVar[{'Message' if isinstance(owner, Message) else 'Struct'}]"
    for field in owner.fields:
        yield f"    {field.name}: {_type(field)} = ..."


def _type(field: Field) -> str:
    item = field.struct.name if field.struct is not None else TYPES.get(field.item, "int")
    kind = f"Sequence[{item}]" if field.is_array else item
    optional = field.nullable is not None or field.default is None
    return f"{kind} | None" if optional and kind != "Records" else kind


if __name__ == "__main__":
    Path(__file__).with_name("messages.pyi").write_text(stub())

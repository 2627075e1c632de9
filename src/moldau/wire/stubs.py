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
from dataclasses import Field
from typing import Any, ClassVar, dataclass_transform

from moldau.wire.schema import Message, Struct

Records = Any  # decoded as a memoryview; to be encoded, anything with a length

def names() -> list[str]: ...
def message(name: str) -> type[Any]: ...
def request_class(key: int) -> type[Any]: ...
def response_class(key: int) -> type[Any]: ...
def record_class(topic: str, kind: str, number: int) -> type[Any]: ...

# Only here: the classes are plain dataclasses with slots, and share no base.
@dataclass_transform()
class _Fields:
    __slots__: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

class _Message(_Fields):
    SCHEMA: ClassVar[Message]

class _Struct(_Fields):
    SCHEMA: ClassVar[Struct]
'''


def stub() -> str:
    """Return the text of the stub file."""
    specs = [schema.message(name) for name in schema.heads()]
    owners: list[Message | Struct] = [owner for spec in specs for owner in (*spec.structs, spec)]
    return OPENING + "".join("\n" + "\n".join(_class(o)) + "\n" for o in owners)


def _class(owner: Message | Struct) -> Iterator[str]:
    rows = [f"    {field.name}: {_type(field)} = ..." for field in owner.fields]
    base = "_Message" if isinstance(owner, Message) else "_Struct"
    yield f"class {owner.name}({base}):" if rows else f"class {owner.name}({base}): ..."
    yield from rows


def _type(field: Field) -> str:
    item = field.struct.name if field.struct is not None else TYPES.get(field.item, "int")
    kind = f"Sequence[{item}]" if field.is_array else item
    optional = field.nullable is not None or field.default is None
    return f"{kind} | None" if optional and kind != "Records" else kind


if __name__ == "__main__":
    Path(__file__).with_name("messages.pyi").write_text(stub())

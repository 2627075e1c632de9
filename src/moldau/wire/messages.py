"""One slotted dataclass per message and struct of the table, built when it is first used.

`messages.MetadataRequest` and `messages.MetadataRequest_MetadataRequestTopic` come into being on first access, so
name them where they are used and do not import them at start-up. One class covers all versions of its message.

Defaults are Kafka's. Arrays default to `()`; a struct that travels as a tagged field defaults to None, which stands
for the struct with all its own defaults: it is not sent. Any other struct is made anew, unless its row says null.
`messages.pyi` tells type checkers of all the classes; `python -m moldau.wire.stubs` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from moldau.wire import schema
from moldau.wire.schema import NEW, Field, Message, Struct


def names() -> list[str]:
    """List the messages of the table, in its order."""
    return list(schema.heads())


def message(name: str) -> type[Any]:
    """Return the class of a message; KeyError if there is none of that name."""
    found = globals().get(name)
    return _build(schema.message(name)) if found is None or name not in schema.heads() else found


def request_class(key: int) -> type[Any]:
    """Return the request of an API key; KeyError if the table does not have the key."""
    return message(schema.by_key()["request", key].name)


def response_class(key: int) -> type[Any]:
    """Return the response of an API key; KeyError if the table does not have the key."""
    return message(schema.by_key()["response", key].name)


def record_class(topic: str, kind: str, number: int) -> type[Any]:
    """A record of an internal topic: `record_class("__cluster_metadata", "metadata", 2)` is TopicRecord."""
    return message(schema.records(topic)[kind, number].name)


def __getattr__(name: str) -> type[Any]:
    owner = name.partition("_")[0]
    if owner and owner in schema.heads():  # none for the dunder names that the import system asks for
        _build(schema.message(owner))
        if name in globals():
            return globals()[name]
    raise AttributeError(f"the message table has no {name}")


def _build(spec: Message) -> type[Any]:
    """Make the classes of a message and of its structs, and leave them in this module."""
    scope: dict[str, Any] = {"__name__": __name__, "_same": _same, "_show": _show, "NEW": NEW}
    owners: list[Message | Struct] = [*spec.structs, spec]
    exec("\n".join(_source(owner) for owner in owners), scope)
    for owner in owners:
        globals()[owner.name] = _dress(scope[owner.name], owner)
    return globals()[spec.name]


def _source(owner: Message | Struct) -> str:
    names = [f.name for f in owner.fields]
    parameters = "".join(f", {f.name}={'NEW' if f.default is NEW else repr(f.default)}" for f in owner.fields)
    body = [f"self.{f.name} = {_initial(f)}" for f in owner.fields] or ["pass"]
    return "\n".join(
        [
            f"class {owner.name}:",
            f"    __slots__ = {tuple(names)!r}",
            f"    __annotations__ = dict.fromkeys(__slots__, 'Any')\n    __doc__ = {owner.name!r}",
            "    __eq__ = _same\n    __repr__ = _show",
            f"    def __init__(self{parameters}):",
            *(f"        {line}" for line in body),
        ]
    )


def _initial(field: Field) -> str:
    if field.default is not NEW:
        return field.name
    assert field.struct is not None
    return f"{field.struct.name}() if {field.name} is NEW else {field.name}"


def _dress(cls: type[Any], owner: Message | Struct) -> type[Any]:
    """Make a dataclass of a class that already has its methods, which is several times cheaper."""
    cls = dataclass(init=False, repr=False, eq=False, match_args=False)(cls)
    for declared, field in zip(fields(cls), owner.fields, strict=True):
        if field.default is NEW:
            assert field.struct is not None
            declared.default_factory = globals()[field.struct.name]
        else:
            declared.default = field.default
    cls.SCHEMA = owner
    return cls


def _same(self: Any, other: object) -> bool:
    """Compare messages; a tuple and a list of the same elements are the same array."""
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(_alike(getattr(self, name), getattr(other, name)) for name in self.__slots__)


def _alike(a: Any, b: Any) -> bool:
    if type(a) in (list, tuple) and type(b) in (list, tuple):
        return list(a) == list(b)
    return bool(a == b)


def _show(self: Any) -> str:
    return f"{self.__class__.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"

"""Compare Connect's answers with ours, subject by subject."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.connect.judge import coding, ours
from tests.connect.judge.deviations import DEVIATIONS
from tests.connect.judge.inputs import Inputs
from tests.connect.judge.jvm import Connect
from tests.connect.judge.subjects import SUBJECTS, Subject

ITEMS = 20  # for one choice of settings
# Where Connect stumbles over an object of a class that it did not expect, we refuse the value.
ACCIDENTS = {
    "java.lang.NullPointerException",
    "java.lang.ClassCastException",
    "java.lang.IndexOutOfBoundsException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.NumberFormatException",
}
REFUSALS = ("org.apache.kafka.connect.errors.DataException", "java.lang.IllegalArgumentException")


@dataclass(slots=True)
class Result:
    """What a trial saw: how many items agreed in what way, and the first differences."""

    seen: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def trial(judge: Connect, name: str, items: int, seed: object) -> Result:
    """Put a subject on trial with a number of random items."""
    result = Result()
    subject = SUBJECTS[name]
    for batch in range(max(1, items // ITEMS)):
        inputs = Inputs(f"{seed}/{name}/{batch}")
        config = inputs.config = subject.config(inputs)
        made = [subject.item(inputs) for _ in range(min(ITEMS, items))]
        theirs = judge.answer(
            {
                "op": subject.op,
                "class": subject.class_name,
                "config": config,
                "items": [_coded(subject, x) for x in made],
            }
        )
        mine = ours.answer(subject.op, subject.class_name, config, made)
        _compare(result, f"{name} {config}", made, theirs, mine)
    return result


def _coded(subject: Subject, item: Any) -> Any:
    if subject.op == "write":
        return {"schema": coding.schema(item[0]), "value": coding.value(*item)}
    if subject.op == "read":
        return None if item is None else base64.b64encode(item).decode()
    return coding.record(item)


def _compare(result: Result, what: str, items: list[Any], theirs: Any, mine: Any) -> None:
    if isinstance(theirs, dict) or isinstance(mine, dict):
        refused = isinstance(theirs, dict) and isinstance(mine, dict)
        result.seen["refused" if refused else "differ"] += len(items)
        if not refused:
            result.differences.append(f"{what}\n  Connect: {_short(theirs)}\n  ours: {_short(mine)}")
        return
    for item, their, my in zip(items, theirs, mine, strict=True):
        how = _agreement(their, my)
        result.seen[how] += 1
        if how == "differ":
            shown = f"{what}\n  item: {_short(item)}\n  Connect: {_short(their)}\n  ours:    {_short(my)}"
            result.differences.append(shown + _where(coding.in_order(their), coding.in_order(my)))


def _agreement(their: dict[str, Any], my: dict[str, Any]) -> str:
    if any(row.message and row.message in my.get("message", "") for row in DEVIATIONS):
        return "deviation"
    if "error" in their and "error" in my:
        if their["error"] == my["error"]:
            return "error"
        return "accident" if their["error"] in ACCIDENTS and my["error"] in REFUSALS else "differ"
    return "same" if their == my or coding.in_order(their) == coding.in_order(my) else "differ"


def _where(their: Any, my: Any, path: str = "") -> str:
    """Name the first place where two answers differ."""
    if isinstance(their, dict) and isinstance(my, dict) and their.keys() == my.keys():
        for name in their:
            if their[name] != my[name]:
                return _where(their[name], my[name], f"{path}.{name}")
    if isinstance(their, list) and isinstance(my, list) and len(their) == len(my):
        for at, (one, other) in enumerate(zip(their, my, strict=True)):
            if one != other:
                return _where(one, other, f"{path}[{at}]")
    return f"\n  at {path}: {_short(their)} / {_short(my)}"


def _short(found: Any) -> str:
    text = found if isinstance(found, str) else json.dumps(found, default=str, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + ".."

"""What a command of a state machine decides: records to commit, and the answer to give once they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Result(Generic[Answer]):
    """Records in the order in which they must be replayed, and the answer that becomes true with them."""

    records: tuple[Any, ...]
    answer: Answer

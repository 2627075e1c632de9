"""Campaigns of kills, round by round: the command line that their programs share. Each round has a seed of its own."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.spark import tables


class Result(Protocol):
    """What a round showed."""

    @property
    def passed(self) -> bool: ...

    @property
    def cells(self) -> list[object]: ...


@dataclass(frozen=True, slots=True)
class Program:
    """`python -m tests.spark.<name>`. `campaign` gets a number of kills, a seed, and a broker if it is not to make one
    of its own; `table` is the name of the table in a page, and `head` the names of its columns.
    """

    name: str
    about: str | None
    table: str
    head: Sequence[str]
    campaign: Callable[[int, int, str | None], Result]
    kills: int
    rounds: int

    def main(self) -> int:
        given = self.parser().parse_args()
        for number in range(given.rounds):
            found = self.campaign(given.kills // given.rounds, given.seed + number, given.bootstrap)
            print(tables.markdown(self.head, [found.cells]), flush=True)
            if given.page:
                tables.put(given.page, self.table, self.head, [found.cells], sums=True)
            if not found.passed:
                return 1
        return 0

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=f"tests.spark.{self.name}", description=self.about)
        parser.add_argument("--kills", type=int, default=self.kills)
        parser.add_argument("--rounds", type=int, default=self.rounds, help="brokers and checkpoints that begin anew")
        parser.add_argument("--seed", type=int, default=1, help="of the first round")
        parser.add_argument("--bootstrap", help="another broker, which is not killed")
        parser.add_argument("--page", type=Path, help="where the table is, whose rows of other seeds stay")
        return parser


def chosen(kills: int, chance: random.Random, weights: Mapping[str, int], bootstrap: str | None) -> list[str]:
    """What is killed, one after the other; a broker that is not ours is not."""
    kinds = [name for name in weights if bootstrap is None or name != "broker"]
    return chance.choices(kinds, [weights[name] for name in kinds], k=kills)

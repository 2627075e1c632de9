"""`make judge-sql`: numbers, decimals, times and regular expressions of SQL beside the JDK's own classes.

Usage: python -m tests.sql.judge [--items N] [--seed N] [--subject NAME] [--shown N]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests import needs
from tests.sql.judge.subjects import SUBJECTS, Subject

JAVA = Path(__file__).with_name("Judge.java")
FLAGS = ["-XX:+UseSerialGC", "-Xmx256m", "-Xss4m", "-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"]
ITEMS = 10_000
AT_ONCE = 200  # requests on their way: fewer bytes than a pipe holds
NOT_SUPPORTED = "not supported"
REFUSED = "refused"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql.judge", description="Compare with the JDK.")
    parser.add_argument("--items", type=int, default=ITEMS, help=f"Inputs of each subject ({ITEMS}).")
    parser.add_argument("--seed", type=int, default=1, help="Draw them from this seed.")
    parser.add_argument("--subject", choices=list(SUBJECTS), action="append", help="Only this subject; repeatable.")
    parser.add_argument("--shown", type=int, default=5, help="Differences shown of each subject.")
    given = parser.parse_args(arguments)
    if lacking := needs.missing(["javac"]):
        print(f"left out: {lacking.tool}: {lacking.reason}")
        return 0
    table = Table("subject", "inputs", "refused by both", "not supported", "differ")
    differing = 0
    with subprocess.Popen(
        ["java", *FLAGS, str(JAVA)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            for name in given.subject or SUBJECTS:
                counts = Counter[str]()
                for verdict, shown in compare(
                    process, SUBJECTS[name], given.items, random.Random(f"{given.seed} {name}")
                ):
                    counts[verdict] += 1
                    if verdict == "differs" and counts[verdict] <= given.shown:
                        print(f"{name}: {shown}", flush=True)
                differing += counts["differs"]
                table.add_row(
                    name,
                    *(f"{n:,}" for n in (counts.total(), *(counts[v] for v in (REFUSED, NOT_SUPPORTED, "differs")))),
                )
        finally:
            process.kill()
    Console().print(table)
    return 1 if differing else 0


def compare(
    process: subprocess.Popen[str], subject: Subject, items: int, chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield a verdict on each input, and both answers."""
    assert process.stdin is not None and process.stdout is not None
    for start in range(0, items, AT_ONCE):
        drawn = [subject.draw(chance) for _ in range(min(AT_ONCE, items - start))]
        for arguments in drawn:
            words = (one.encode("utf-8", "surrogatepass").hex() for one in arguments)
            process.stdin.write(" ".join((subject.operation, *words)) + "\n")
        process.stdin.flush()
        for arguments in drawn:
            answer = process.stdout.readline().rstrip("\n")
            assert answer, f"the JVM ended: {arguments}"
            theirs = bytes.fromhex(answer[1:]).decode() if answer[0] == "+" else None
            yield judged(subject, arguments, theirs, answer)


def judged(subject: Subject, arguments: Sequence[str], theirs: str | None, answer: str) -> tuple[str, str]:
    reason = ""
    try:
        ours = subject.ours(*arguments)
    except (ValueError, ArithmeticError, IndexError, TimeoutError) as error:
        ours, reason = None, f"{type(error).__name__}: {error}"
    if ours == theirs:
        return (REFUSED if ours is None else "agrees"), ""
    if subject.is_same is not None and ours is not None and theirs is not None and subject.is_same(ours, theirs):
        return "agrees", ""
    if ours is None and NOT_SUPPORTED in reason:
        return NOT_SUPPORTED, ""
    told = answer if theirs is None else repr(theirs)
    return "differs", f"{list(arguments)!r}: theirs {told}, ours {reason if ours is None else repr(ours)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

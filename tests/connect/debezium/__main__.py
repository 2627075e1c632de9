"""`make judge-cdc`: capture one database with Debezium and with ours, and compare every record with its schemas.

Each round has other settings. Differences that are meant stand in EXPECTED of each database's file with their reasons;
any other one is printed, and the exit code is 1. It needs java, mvn (once), PostgreSQL, MariaDB and MySQL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tests.connect.databases import MARIADB, MYSQL
from tests.connect.debezium import binlog, postgres
from tests.connect.debezium.comparing import unexpected


class Judged(NamedTuple):
    """What is compared: settings of each round, differences that are meant, and how records are captured."""

    rounds: list[dict[str, str]]
    expected: dict[str, str]
    capture: Callable[[dict[str, str]], tuple[list[Any], list[Any]]]


DATABASES = {
    "postgres": Judged(postgres.ROUNDS, postgres.EXPECTED, postgres.capture),
    **{kind: Judged(binlog.ROUNDS, binlog.expected(kind), partial(binlog.capture, kind)) for kind in (MARIADB, MYSQL)},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", help=f"of {', '.join(DATABASES)}; all by default")
    found = 0
    for name in parser.parse_args().databases or DATABASES:
        database = DATABASES[name]
        for config in database.rounds:
            ours, theirs = database.capture(config)
            lines = list(unexpected(ours, theirs, database.expected))
            print(f"{name}, {config or 'defaults'}: {len(ours)} and {len(theirs)} records, {len(lines)} unexpected")
            for line in lines:
                print("  " + line)
            found += len(lines)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

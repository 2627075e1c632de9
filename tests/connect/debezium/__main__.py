"""`make judge-cdc`: capture one database with Debezium and with ours, and compare every record with its schemas.

Each round has other settings. Differences that are meant stand in EXPECTED of each database's file with their reasons;
any other one is printed, and the exit code is 1. It needs java, mvn (once), PostgreSQL and MariaDB.
"""

from __future__ import annotations

import argparse
import sys

from tests.connect.debezium import mariadb, postgres
from tests.connect.debezium.comparing import unexpected

DATABASES = {"postgres": postgres, "mariadb": mariadb}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", help=f"of {', '.join(DATABASES)}; all by default")
    found = 0
    for name in parser.parse_args().databases or DATABASES:
        database = DATABASES[name]
        for config in database.ROUNDS:
            ours, theirs = database.capture(config)
            lines = list(unexpected(ours, theirs, database.EXPECTED))
            print(f"{name}, {config or 'defaults'}: {len(ours)} and {len(theirs)} records, {len(lines)} unexpected")
            for line in lines:
                print("  " + line)
            found += len(lines)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

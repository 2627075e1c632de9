"""What Spark is given by several threads at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from moldau.spark.session.shared import PATH, giving_functions


def test_packages_of_one_thread_are_not_seen_by_the_functions_of_another(tmp_path: Path) -> None:
    before = {"A": "1", PATH: "before"}
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(environment=before, master="local[1]"))
    inside, seen = threading.Event(), dict[str, str]()

    def give_packages() -> None:
        with giving_functions(spark, str(tmp_path)):
            inside.set()
            time.sleep(0.1)
            seen["packages"] = spark.sparkContext.environment[PATH]

    other = threading.Thread(target=give_packages)
    other.start()
    assert inside.wait(10)
    with giving_functions(spark):
        seen["none"] = spark.sparkContext.environment[PATH]
    other.join()
    assert seen == {"packages": f"{tmp_path}:before", "none": "before"}
    assert spark.sparkContext.environment == before


def test_who_reads_the_environment_elsewhere_is_not_disturbed(tmp_path: Path) -> None:
    """PySpark walks over it with a call of Java for each variable."""
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(environment={"A": "1", "B": "2"}, master="local[1]"))
    walk = iter(spark.sparkContext.environment.items())
    assert next(walk) == ("A", "1")
    with giving_functions(spark, str(tmp_path)):
        assert next(walk) == ("B", "2")
    assert spark.sparkContext.environment == {"A": "1", "B": "2"}

"""How tests are dealt out to the workers of a run."""

from __future__ import annotations

from tests.needs import ROOT
from tests.scheduling import FIRST, TOGETHER, group_of, rank


def test_tests_that_share_a_spark_stay_together_and_others_of_that_folder_stay_with_their_file() -> None:
    assert group_of("tests/spark/test_sink.py") == group_of("tests/spark/test_conveyor.py") == "tests/spark/"
    assert group_of("tests/spark/test_planning.py") == "tests/spark/test_planning.py"
    assert group_of("tests/conformance/test_kcat.py") == "tests/conformance/test_kcat.py"


def test_what_takes_longest_begins_first() -> None:
    files = ["tests/wire/test_codec.py", "tests/test_docs.py", "tests/spark/test_sink.py"]
    assert sorted(files, key=rank) == files[::-1]


def test_every_row_is_of_a_file_or_folder_that_exists() -> None:
    def exists(row: str) -> bool:
        folder, _, prefix = row.rpartition("/")
        return any(file.name.startswith(prefix) for file in (ROOT / folder).iterdir())

    assert not [row for row in (*TOGETHER, *FIRST) if not exists(row)]


def test_a_group_with_a_place_of_its_own_in_the_queue_is_a_group() -> None:
    assert not [row for row in FIRST if row not in TOGETHER and group_of(row) != row]


def test_every_test_that_takes_a_spark_is_in_its_group() -> None:
    files = [file for file in (ROOT / "tests" / "spark").glob("test_*.py") if "spark: SparkSession" in file.read_text()]
    assert files and {group_of(file.relative_to(ROOT).as_posix()) for file in files} == {"tests/spark/"}

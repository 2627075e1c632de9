"""How the results of the public suites are read and judged."""

from __future__ import annotations

import json

from tests.conformance import franz_go, librdkafka, report, security
from tests.conformance.outcome import Expected, Outcome, Score, Verdict, look_up

TABLE = """
|  <MAIN>                  |     PASSED |   1.8s |
|  0012_produce_consume    |     PASSED |   1.6s |
|  0012_other              |    SKIPPED |   0.0s | needs SSL
|  0012_local              |    SKIPPED |   0.0s | Filtered due to negative test flags
"""


def test_the_table_of_librdkafka_is_read_without_tests_that_need_no_broker() -> None:
    assert list(librdkafka.outcomes("0012", TABLE, 0)) == [
        Outcome("0012_produce_consume", Verdict.PASSED),
        Outcome("0012_other", Verdict.SKIPPED, "needs SSL"),
    ]


def test_a_run_without_a_table_failed_and_says_why() -> None:
    text = '=== Running test 0053_stats ===\n### Test "0053_stats" failed at x.c:7:() at noon: ###\nno schema\n'
    assert list(librdkafka.outcomes("0053", text, -6)) == [Outcome("0053_stats", Verdict.FAILED, "no schema")]


def test_the_test_that_failed_is_not_the_one_that_ran_last() -> None:
    failed = '=== Running test 0097_verify ===\n### Test "0097_verify" failed at x.c:7:() at noon: ###\nno alert\n'
    (outcome,) = librdkafka.outcomes("0097", failed + "=== Running test 0097_local ===\n", 1)
    assert outcome == Outcome("0097_verify", Verdict.FAILED, "no alert")


def test_a_run_that_hangs_failed() -> None:
    (outcome,) = librdkafka.outcomes("0053", "=== Running test 0053_stats ===\n", None)
    assert outcome.verdict is Verdict.FAILED and "did not end" in outcome.why


def test_leaves_count_in_go_and_parents_only_if_they_failed_alone() -> None:
    states = [("A", "run"), ("A/x", "pass"), ("A/y", "fail"), ("A", "fail"), ("B", "skip"), ("C", "run")]
    events = [json.dumps({"Test": test, "Action": action}) for test, action in states]
    found = {outcome.test: outcome.verdict for outcome in franz_go.outcomes(events)}
    assert found == {"A/x": Verdict.PASSED, "A/y": Verdict.FAILED, "B": Verdict.SKIPPED, "C": Verdict.FAILED}


def test_a_name_stands_for_all_that_begin_with_it() -> None:
    reasons = {"0105": "all", "0105_b": "one", "TestETL": "go"}
    asked = ["0105_a", "0105_b", "TestETL/x", "TestETLMore", "0106_a"]
    assert [look_up(reasons, test) for test in asked] == ["all", "one", "go", None, None]


def test_only_failures_that_nothing_explains_stay_failures() -> None:
    expected = Expected(waits={"1": "groups"}, known={"2": "three brokers"})
    judged = [expected.judge(Outcome(f"{n}_x", Verdict.FAILED)).verdict for n in (1, 2, 3)]
    assert judged == [Verdict.WAITS, Verdict.KNOWN, Verdict.FAILED]
    assert expected.judge(Outcome("1_x", Verdict.PASSED)).verdict is Verdict.PASSED


def test_a_pass_that_asked_the_broker_nothing_is_not_counted_as_one() -> None:
    expected = Expected(empty={"4": "quick mode"})
    assert expected.judge(Outcome("4_x", Verdict.PASSED)) == Outcome("4_x", Verdict.EMPTY, "quick mode")


def test_the_page_names_what_was_left_out() -> None:
    done = Score("librdkafka", (Outcome("0001_a", Verdict.PASSED), Outcome("0002_b", Verdict.WAITS, "groups")))
    page = report.page([done, Score("franz-go", left_out="no Go here")])
    assert "| librdkafka | 1 | 0 | 1 | 0 | 0 | 0 |" in page
    assert "| groups | `0002_b` |" in page and "left out: no Go here" in page


def test_three_brokers_have_rows_of_their_own_and_the_same_empty_tests() -> None:
    one, three = Expected.of("librdkafka"), Expected.of("librdkafka", 3)
    assert one.known.keys() - three.known.keys() == {"0098", "0101", "0103"}
    assert one.empty == three.empty != {}


def test_what_passes_with_kafka_or_in_plain_text_alone_is_worse() -> None:
    ours = {"a": Verdict.PASSED, "b": Verdict.FAILED, "c": Verdict.FAILED, "d": Verdict.SKIPPED}
    theirs = {"a": Verdict.PASSED, "b": Verdict.PASSED, "c": Verdict.FAILED, "d": Verdict.PASSED, "e": Verdict.PASSED}
    both = {
        name: {test: Outcome(test, verdict, "why") for test, verdict in found.items()}
        for name, found in ((security.MOLDAU, ours), (security.KAFKA, theirs))
    }
    assert security.worse(both) == ["b", "d", "e"]
    assert security.worse({**both, security.PLAIN: {"c": Outcome("c", Verdict.PASSED)}}) == ["b", "c", "d", "e"]
    lines = list(security.section(security.PARTS[0], both))
    assert "| `c` | failed: why | failed: why |" in lines and "| `e` | skipped: not run | passed |" in lines


def test_a_part_replaces_its_section_and_no_other() -> None:
    one, other, *_ = security.PARTS
    before = security.page({one: f"## {one.title}\n\nwas so\n", other: f"## {other.title}\n\nkept\n"}, "")
    after = security.page({one: f"## {one.title}\n\nis so\n"}, before)
    assert after == before.replace("was so", "is so") != before
    assert security.page({}, after) == after

"""How command lines are read, and that every tool has a table of flags."""

from __future__ import annotations

import pytest

from moldau.cli import kafka
from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Mistake, Options, Tool, Usage, forbid, key_values, read, require
from moldau.cli.kafka.subcommands import ParsedTool
from tests.cli.kafka.running import run

TOOL = Tool(
    "kafka-test",
    "For tests.",
    (
        Flag("topic", "topic"),
        Flag("partitions", "number", type=int, default=7),
        Flag("list"),
        Flag("state", "states", optional=True, beside=("list",)),
        Flag("names", "a,b", separator=","),
        Flag("old", "x", refused="it is gone."),
    ),
    lambda options: 0,
)


def given(*words: str) -> Options:
    return read(TOOL, words)


def test_a_value_follows_its_flag_or_a_sign_of_equality() -> None:
    assert given("--topic", "a")["topic"] == given("--topic=a")["topic"] == given("-topic", "a")["topic"] == "a"
    assert given("--topic", "--list")["topic"] == "--list"
    assert given("--topic=a=b")["topic"] == "a=b"


def test_a_flag_that_is_not_given_has_its_default() -> None:
    assert given()["partitions"] == 7 and given()["topic"] is None and "partitions" not in given()


def test_an_optional_value_may_be_left_out() -> None:
    assert given("--list", "--state")["state"] is None
    assert given("--state", "--list")["state"] is None
    assert given("--list", "--state", "stable")["state"] == "stable"


def test_repeated_flags_have_several_values() -> None:
    twice = given("--topic", "a", "--topic", "b")
    assert twice.all("topic") == ["a", "b"]
    with pytest.raises(Mistake, match="Found multiple arguments for option topic, but you asked for only one"):
        twice["topic"]
    assert given("--names", "a,b", "--names", "c").all("names") == ["a", "b", "c"]


def test_flags_are_not_abbreviated_and_unknown_ones_are_named() -> None:
    with pytest.raises(Mistake, match=r"^top is not a recognized option"):
        given("--top", "a")
    with pytest.raises(Mistake, match=r"^Option topic requires an argument"):
        given("--topic")
    with pytest.raises(Mistake, match=r"^Option\(s\) \[state\] are unavailable given other options"):
        given("--state")


def test_a_value_of_the_wrong_type_is_told_when_it_is_asked_for() -> None:
    options = given("--partitions", "x")
    with pytest.raises(Mistake, match="Cannot parse argument 'x' of option partitions"):
        options["partitions"]


def test_a_flag_that_is_refused_says_why() -> None:
    with pytest.raises(Mistake, match="Option old is not supported: it is gone"):
        given("--old", "1")


def test_flags_of_old_clusters_are_refused_by_name() -> None:
    done = run("kafka-configs", "--zookeeper", "x:2181", "--describe")
    assert done.code == 1 and done.err.startswith("Option zookeeper is not supported: Kafka has no ZooKeeper since 4.0")


def test_what_is_no_flag_is_kept() -> None:
    assert given("a", "--list", "b", "--", "--topic").arguments == ("a", "b", "--topic")


def test_flags_that_are_needed_or_forbidden_are_named_as_kafka_does() -> None:
    with pytest.raises(Usage, match=r'Missing required argument "\[topic\]"'):
        require(given("--list"), "topic")
    with pytest.raises(Usage, match=r'Option "\[list\]" can\'t be used with option "\[topic\]"'):
        forbid(given("--list", "--topic", "a"), "list", ("topic",))
    forbid(given("--topic", "a"), "list", ("topic",))


def test_properties_may_lack_a_value_and_hold_signs_of_equality() -> None:
    assert key_values(["a=1", "b=", "c", "d=x=y"]) == {"a": "1", "b": "", "c": "", "d": "x=y"}


@pytest.mark.parametrize("name", sorted(kafka.TOOLS))
def test_every_tool_is_there_under_both_names(name: str) -> None:
    assert kafka.find(name) is kafka.find(f"{name}.sh")


@pytest.mark.parametrize("name", sorted(kafka.ELSEWHERE))
def test_a_tool_that_is_not_here_is_refused_by_name(name: str) -> None:
    done = run(f"{name}.sh", "--help")
    assert done.code == 1 and done.err.startswith(f"{name} does not exist here: ")


@pytest.mark.parametrize("name", sorted(kafka.TOOLS))
def test_every_flag_says_what_it_is_for(name: str) -> None:
    tool = kafka.find(name)
    if isinstance(tool, Tool):
        assert all(usage.words(flag) for flag in tool.flags)
        assert len({flag.name for flag in tool.flags}) == len(tool.flags)
    elif isinstance(tool, ParsedTool):
        assert all(flag.help for flag in (*tool.flags, *(one for each in tool.commands for one in each.flags)))


@pytest.mark.parametrize("name", sorted(name for name in kafka.TOOLS if isinstance(kafka.find(name), Tool)))
def test_help_and_version_are_as_kafka_has_them(name: str) -> None:
    told = run(name, "--help")
    broker = {"kafka-dump-log": "", "kafka-replica-verification": "\n--broker-list"}.get(name, "\n--bootstrap-server")
    assert told.code == 1 and not told.out and broker in told.err
    assert run(name, "--version") == (0, "4.3.1\n", "")
    assert run(name).code == 1


def test_a_subcommand_lacks_and_knows_flags_of_its_own() -> None:
    done = run("kafka-transactions", "--bootstrap-server", "x:1", "abort", "--topic", "a")
    assert done.code == 1 and done.err.endswith("kafka-transactions.sh: error: argument --partition is required\n")
    assert "abort [-h]" in done.err
    assert "error: unrecognized arguments: '--foo'" in run("kafka-transactions", "list", "--foo").err
    assert "error: argument --bootstrap-server is required" in run("kafka-transactions", "list").err
    assert run("kafka-features", "describe").err == (
        "Command line error: one of the arguments --bootstrap-server --bootstrap-controller is required. "
        "Type --help for help."
    )
    assert run("kafka-producer-perf-test").code == 0

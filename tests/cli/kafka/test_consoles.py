"""kafka-console-producer and kafka-console-consumer."""

from __future__ import annotations

import pytest

from tests.cli.kafka.running import Done, Kafka, run

KEYED = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")


def write(kafka_tools: Kafka, topic: str, text: str, *words: str) -> Done:
    return kafka_tools("kafka-console-producer", "--topic", topic, *words, stdin=text)


def read(kafka_tools: Kafka, topic: str, count: int, *words: str) -> list[str]:
    place = ("--partition", "0", "--offset", "earliest") if "--offset" not in words else ("--partition", "0")
    limits = ("--max-messages", str(count), "--timeout-ms", "20000")
    return kafka_tools.ok("kafka-console-consumer", "--topic", topic, *place, *limits, *words)


def show(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--formatter-property", name))


def test_lines_become_records_and_records_lines(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    assert write(kafka_tools, name, "one\ntwö\r\nthree").code == 0
    assert read(kafka_tools, name, 3) == ["one", "twö", "three"]
    assert read(kafka_tools, name, 1, "--offset", "2") == ["three"]


def test_keys_headers_and_nulls(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    headers = ("--reader-property", "parse.headers=true", "--reader-property", "parse.key=true")
    marker = ("--reader-property", "null.marker=NIL")
    assert write(kafka_tools, name, "h:1,i:NIL\tk\tv\nNIL\tNIL\tNIL\n", *headers, *marker).code == 0
    shown = show(
        "print.key=true", "print.headers=true", "print.offset=true", "print.partition=true", "print.epoch=true"
    )
    assert read(kafka_tools, name, 2, *shown) == [
        "Partition:0\tOffset:0\tEpoch:NOT_PRESENT\th:1,i:null\tk\tv",
        "Partition:0\tOffset:1\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tnull",
    ]
    assert read(kafka_tools, name, 2, *show("print.value=false", "print.key=true", "null.literal=-")) == ["k", "-"]
    line = read(kafka_tools, name, 1, *show("print.timestamp=true", "key.separator=|", "print.key=true"))[0]
    assert line.startswith("CreateTime:") and line.endswith("|k|v")


def test_a_line_without_its_key_ends_the_producer(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    done = write(kafka_tools, name, "k:v\nnone\n", *KEYED)
    assert done.code == 1
    said = "org.apache.kafka.common.KafkaException: No key separator found on line number 2: 'none'"
    assert done.err.startswith(said)
    assert write(kafka_tools, name, "none\n", *KEYED, "--reader-property", "ignore.error=true").code == 0


def test_old_names_of_flags_are_warned_of(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    done = write(kafka_tools, name, "k:v\n", "--property", "parse.key=true", "--property", "key.separator=:")
    assert done == (0, f"Warning: --property {LATER} Use --reader-property instead.\n", "")
    done = kafka_tools("kafka-console-consumer", "--topic", name, "--partition", "0", "--offset", "0", "--max-messages",
                       "1", "--property", "print.key=true")  # fmt: skip
    assert done.out == f"Option --property {LATER} Use --formatter-property instead.\nk\tv\n"


LATER = "is deprecated and will be removed in a future version."


def test_types_are_named_by_kafkas_classes(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    write(kafka_tools, name, "12345678\nx\n")
    long = ("--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
    assert read(kafka_tools, name, 1, *long) == [str(int.from_bytes(b"12345678", "big"))]
    place = ("--topic", name, "--partition", "0", "--offset", "1", "--max-messages", "1")
    done = kafka_tools("kafka-console-consumer", *place, *long)
    assert done.code == 1 and "Size of data received by LongDeserializer is not 8" in done.err
    done = kafka_tools("kafka-console-consumer", *place, *long, "--skip-message-on-error")
    assert done.code == 0 and done.out == "" and done.err.endswith("Processed a total of 1 messages\n")


def test_a_group_goes_on_where_it_stopped(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    write(kafka_tools, name, "".join(f"{number}\n" for number in range(6)))
    words = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    assert kafka_tools.ok("kafka-console-consumer", *words) == ["0", "1", "2"]
    assert kafka_tools.ok("kafka-console-consumer", *words) == ["3", "4", "5"]
    lines = kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", name)
    assert lines[2].split() == [name, name, "0", "6", "6", "0", "-", "-", "-"]


def test_silence_ends_the_consumer_without_a_fault(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    words = ("--topic", name, "--partition", "0", "--offset", "earliest", "--timeout-ms", "300")
    done = kafka_tools("kafka-console-consumer", *words)
    assert done.code == 0 and done.out == "" and "org.apache.kafka.common.errors.TimeoutException" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Exactly one of the following arguments is required: [topic], [include]"),
        (["--topic", "x", "--offset", "1"], "The partition is required when offset is specified."),
        (["--topic", "x", "--partition", "0", "--group", "g"], "Options group and partition cannot be specified"),
        (["--topic", "x", "--partition", "0", "--offset", "-3"], "The provided offset value '-3' is incorrect."),
        (["--topic", "x", "--group", "a", "--command-property", "group.id=b"], "The group ids provided in different"),
        (["--topic", "x", "--formatter", "com.example.Mine"], "The formatter com.example.Mine is a class of Java"),
        (
            ["--topic", "x", "--from-beginning", "--command-property", "auto.offset.reset=latest"],
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest', please remove one option",
        ),
    ],
)
def test_flags_that_contradict_each_other_are_refused(words: list[str], said: str) -> None:
    done = run("kafka-console-consumer", "--bootstrap-server", "127.0.0.1:1", *words)
    assert done.code == 1 and done.out == "" and done.err.startswith(said)


def test_the_producer_wants_a_topic_and_an_address() -> None:
    assert run("kafka-console-producer", "--bootstrap-server", "a:1").err.startswith('Missing required argument "[top')
    assert run("kafka-console-producer", "--topic", "x").err.startswith("Error while validating the bootstrap address")
    assert (
        "Please provide valid host:port" in run("kafka-console-producer", "--topic", "x", "--bootstrap-server", "a").err
    )

"""`moldau produce` and `moldau consume` on a real broker, beside kcat where it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moldau.testing import Broker, eventually
from tests.cli.running import Moldau


def test_lines_come_back_in_order(moldau: Moldau) -> None:
    topic = moldau.topic()
    done = moldau.run("produce", topic, stdin=b"a\n\nb\xff\nlast without end")
    assert (done.code, done.err) == (0, f"4 records written to {topic}\n")
    read = moldau.run("consume", topic, "--exit")
    assert (read.raw, read.err) == (b"a\n\nb\xff\nlast without end\n", "4 records\n")


def test_a_hundred_thousand_lines_over_many_batches(moldau: Moldau) -> None:
    topic = moldau.topic(3)
    lines = [f"{number:0100}" for number in range(30_000)]
    moldau.write(topic, *lines, options=("--compression", "zstd"))
    assert sorted(moldau.read(topic)) == lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_and_keys(moldau: Moldau, codec: str) -> None:
    topic = moldau.topic(4)
    moldau.write(topic, "a:1", "b:2", "a:3", options=("-K", ":", "-z", codec))
    read = moldau.read(topic, options=("-f", "%k=%s %p\\n"))
    assert {line.split()[0] for line in read} == {"a=1", "b=2", "a=3"}
    assert len({line.split()[1] for line in read if line.startswith("a")}) == 1


def test_headers_nulls_timestamps_and_partitions(moldau: Moldau) -> None:
    topic = moldau.topic(2)
    moldau.write(topic, "k:", "k:v", options=("-K", ":", "-Z", "-H", "a=1", "-H", "n", "--timestamp", "42", "-p", "1"))
    layout = ("-f", "%p %o %T %k/%K %s/%S [%h]\\n", "-Z")
    assert moldau.read(topic, options=layout) == ["1 0 42 k/1 NULL/-1 [a=1,n=NULL]", "1 1 42 k/1 v/1 [a=1,n=NULL]"]
    assert moldau.read(topic, options=("-p", "0")) == []


def test_positions(moldau: Moldau) -> None:
    topic = moldau.topic(2)
    for partition in "01":
        moldau.write(topic, *(f"{partition}{letter}" for letter in "abcd"), options=("-p", partition))
    for options, expected in (
        (("-o", "beginning"), ["0a", "0b", "0c", "0d", "1a", "1b", "1c", "1d"]),
        (("-o", "-1"), ["0d", "1d"]),
        (("-o", "2", "-p", "1"), ["1c", "1d"]),
        (("-o", "99"), []),
        (("-o", "end"), []),
        (("-o", "s@-1h"), ["0a", "0b", "0c", "0d", "1a", "1b", "1c", "1d"]),
        (("-o", "e@-1h"), []),
        (("-o", "s@0", "-o", "e@now", "-p", "0", "-c", "2"), ["0a", "0b"]),
    ):
        assert sorted(moldau.read(topic, options=options)) == expected, options


def test_times_choose_records(moldau: Moldau) -> None:
    topic = moldau.topic()
    for timestamp in (1000, 2000, 3000):
        moldau.write(topic, str(timestamp), options=("--timestamp", str(timestamp)))
    assert moldau.read(topic, options=("-o", "s@1500", "-o", "e@3000")) == ["2000"]


def test_envelopes_copy_a_topic(moldau: Moldau) -> None:
    one, two = moldau.topic(2), moldau.topic(2)
    moldau("produce", one, "-K", ":", "-H", "h=ü", stdin=b"k\xff:v\n\xc3\xa4:b\n")
    copied = moldau.run("consume", one, "--exit", "-J")
    moldau("produce", two, "-J", stdin=copied.raw)
    again = moldau.run("consume", two, "--exit", "-o", "json")
    strip = [{**json.loads(line), "topic": ""} for line in copied.out.splitlines()]
    assert strip == [{**json.loads(line), "topic": ""} for line in again.out.splitlines()]
    assert {"key": "a/8=", "key_encoding": "base64", "payload": "v"}.items() <= {
        key: value for line in strip if line.get("key_encoding") for key, value in line.items()
    }.items()


def test_several_topics_and_a_count(moldau: Moldau) -> None:
    one, two = moldau.topic(), moldau.topic()
    moldau.write(one, *"abc")
    moldau.write(two, *"def")
    assert sorted(moldau.read(one, two)) == [*"abcdef"]
    assert len(moldau("consume", one, two, "-c", "4").splitlines()) == 4
    assert moldau("consume", one, "-c", "0") == ""


def test_plain_formats_both_ways(moldau: Moldau) -> None:
    for format, written, raw in (
        ("hex", "00ff", b"\x00\xff"),
        ("base64", "AP8=", b"\x00\xff"),
        ("json", '{"a":[1,"é"]}', '{"a":[1,"é"]}'.encode()),
        ("long", "7", b"\0\0\0\0\0\0\0\x07"),
        ("integer", "-1", b"\xff\xff\xff\xff"),
        ("uuid", "6e9a6c62-8a1a-4b6e-9b5c-0d8c1f7e5a11", b"6e9a6c62-8a1a-4b6e-9b5c-0d8c1f7e5a11"),
    ):
        topic = moldau.topic()
        moldau.write(topic, written, options=("--value-format", format))
        assert moldau.run("consume", topic, "-e", "-D", "|").raw == raw + b"|"
        assert moldau.read(topic, options=("--value-format", format)) == [written]


def test_what_does_not_fit_its_format_is_named_or_skipped(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, '{"a":1}', "no json", '{"a":2}')
    done = moldau.run("consume", topic, "-e", "--value-format", "json")
    assert done.code == 1 and done.out == '{"a":1}\n'
    assert f"{topic}-0 offset 1" in done.err and "--skip-bad" in done.err
    skipped = moldau.run("consume", topic, "-e", "--value-format", "json", "--skip-bad")
    assert skipped.out == '{"a":1}\n{"a":2}\n' and "1 skipped" in skipped.err
    refused = moldau.run("produce", topic, "--value-format", "json", stdin=b"{}\n{\n")
    assert refused.code == 1 and "Line 2" in refused.err


def test_a_transaction_is_all_or_nothing(moldau: Moldau) -> None:
    topic = moldau.topic()
    options = ("--transactional-id", topic, "--value-format", "json")
    refused = moldau.run("produce", topic, *options, stdin=b"1\n2\nnot json\n")
    assert refused.code == 1
    moldau.write(topic, "3", options=options)
    assert moldau.read(topic) == ["3"]
    ended = [row for row in moldau.json("txn", "list") if row["id"] == topic]
    assert ended[0]["state"] == "CompleteCommit"


def test_batches_are_as_small_as_the_topic_wants(moldau: Moldau) -> None:
    topic = moldau.topic(1, "max.message.bytes=2000")
    moldau.write(topic, *("x" * 100 for _ in range(100)))
    moldau.write(topic, *("k:" + "x" * 100 for _ in range(100)), options=("-K", ":"))
    assert len(moldau.read(topic)) == 200
    refused = moldau.run("produce", topic, stdin=b"x" * 3000)
    assert refused.code == 1 and "max.message.bytes" in refused.err


def test_a_group_takes_settings_that_only_our_client_knows(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, "a")
    options = ("--group", f"g-{topic}", "-X", "default.api.timeout.ms=5000")
    assert moldau.read(topic, options=options) == ["a"]
    refused = moldau.run("consume", topic, "--group", "g", "-X", "no.such.thing=1")
    assert refused.code == 2 and "no.such.thing" in refused.err


def test_a_group_goes_on_where_it_left_off(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, *"abcdef")
    group = ("--group", f"g-{topic}")
    assert moldau("consume", topic, *group, "-c", "2").splitlines() == ["a", "b"]
    assert moldau.read(topic, options=group) == [*"cdef"]
    assert moldau.read(topic, options=group) == []


def test_files_are_lines_or_whole(moldau: Moldau, tmp_path: Path) -> None:
    topic = moldau.topic()
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\nb\n")
    two.write_text("c")
    moldau("produce", topic, "--file", str(one), "--file", str(two))
    moldau("produce", topic, "--file", str(one), "--whole")
    assert moldau.run("consume", topic, "-e", "-D", "|").out == "a|b|c|a\nb\n|"


def test_mistakes_get_a_sentence(moldau: Moldau) -> None:
    topic = moldau.topic()
    for words, code, sentence in (
        (("produce", "nobody"), 1, "There is no topic nobody"),
        (("produce", topic, "--value-format", "xml"), 2, "avro"),
        (("produce", topic, "--whole"), 2, "--file"),
        (("produce", topic, "--key", "a", "-K", ":"), 2, "not both"),
        (("produce", topic, "--value-schema", "x.avsc"), 2, "no schema"),
        (("produce", topic, "-p", "9"), 1, "no partition 9"),
        (("produce", topic, "--file", "/no/such/file"), 1, "No such file"),
        (("consume", "nobody"), 1, "There is no topic nobody"),
        (("consume", topic, "-o", "sideways"), 2, "no position"),
        (("consume", topic, "-o", "1", "-o", "2"), 2, "twice"),
        (("consume", topic, "-p", "5"), 2, "no partition 5"),
        (("consume", topic, "-f", "%y"), 2, "%s"),
        (("consume", topic, "-o", "stored"), 2, "--group"),
        (("consume", topic, "--group", "g", "-p", "0"), 2, "--partition"),
    ):
        done = moldau.run(*words, stdin=b"x\n")
        assert (done.code, sentence in done.err) == (code, True), (words, done)


def spawn(moldau: Moldau, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "moldau", *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env={**os.environ, **moldau.environment}, **pipes)  # type: ignore[call-overload]


def test_tail_waits_for_more_and_ctrl_c_tells_the_count(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, "old")
    reader = spawn(moldau, "consume", topic, "-o", "-1")
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"old\n"
        moldau.write(topic, "new")
        assert reader.stdout.readline() == b"new\n"
        reader.send_signal(signal.SIGINT)
        _, errors = reader.communicate(timeout=60)
    finally:
        reader.kill()
    assert reader.returncode == 130 and errors == b"2 records\n"


def test_a_reader_that_goes_away_is_no_error(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, *("x" * 100 for _ in range(5000)))
    reader = spawn(moldau, "consume", topic, "--exit", "--quiet")
    assert reader.stdout is not None and reader.stderr is not None
    reader.stdout.readline()
    reader.stdout.close()
    assert reader.stderr.read() == b""
    assert reader.wait(60) == 141
    reader.stderr.close()


def test_ctrl_c_writes_what_was_typed(moldau: Moldau) -> None:
    topic = moldau.topic()
    writer = spawn(moldau, "produce", topic)
    try:
        assert writer.stdin is not None
        writer.stdin.write(b"typed\n")
        writer.stdin.flush()
        eventually(lambda: moldau.read(topic) == ["typed"], what="the record")
        writer.send_signal(signal.SIGINT)
        time.sleep(0.1)
        _, errors = writer.communicate(timeout=60)
    finally:
        writer.kill()
    assert writer.returncode == 130 and errors == b"1 records written\n"


KCAT = (
    ("-f", "%t %p %o %T %k %K %s %S %h|%%\\n"),
    ("-K", ":"),
    ("-Z", "-K", ":"),
    ("-o", "-2"),
    ("-c", "3"),
    ("-f", "%R%s"),
    ("-J",),
)


@pytest.mark.needs("kcat")
@pytest.mark.parametrize("options", KCAT, ids=" ".join)
def test_output_is_that_of_kcat(moldau: Moldau, cluster: Broker, options: tuple[str, ...]) -> None:
    topic = moldau.topic()
    moldau(
        "produce", topic, "-K", ":", "-Z", "-H", "a=1", "-H", "b=2", stdin=b"k:v\nalone\nnull:\n\xc3\xbc:long value\n"
    )
    kcat = ["kcat", "-q", "-C", "-b", cluster.bootstrap_servers, "-t", topic, "-e", *options]
    theirs = subprocess.run(kcat, capture_output=True, timeout=60, check=True).stdout
    ours = moldau.run("consume", topic, "-e", *options).raw
    if options == ("-J",):
        for mine, other in zip(ours.splitlines(), theirs.splitlines(), strict=True):
            told = json.loads(other)
            told.pop("broker", None)  # which one it came from
            assert json.loads(mine) == {"headers": [], **told}
    else:
        assert ours == theirs

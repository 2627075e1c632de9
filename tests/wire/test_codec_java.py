"""The codec against Kafka's own classes, also for the records of internal topics, which kio does not have.

A Java program reads what we wrote into Kafka's class of the message, writes it again, and must give the same bytes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings

from moldau.wire import schema
from moldau.wire.codec import encode
from tests.wire.message_values import EVERY, QUICK, full, message

GENERATED = {
    "__consumer_offsets": "coordinator.group.generated",
    "__transaction_state": "coordinator.transaction.generated",
    "__share_group_state": "coordinator.share.generated",
    "__cluster_metadata": "common.metadata",
}
ELSEWHERE = {
    "QuorumStateData": "raft.generated.QuorumStateData",
    "ProducerSnapshot": "server.log.remote.metadata.storage.generated.ProducerSnapshot",
}
PROGRAM = """
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Echo {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(echo(line.split(" ", -1)));
    }

    static String echo(String[] words) {
        try {
            short version = Short.parseShort(words[1]);
            var message = (Message) Class.forName("org.apache.kafka." + words[0]).getConstructor().newInstance();
            var input = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            message.read(new ByteBufferAccessor(input), version);
            if (input.hasRemaining()) return "left over: " + input.remaining();
            var cache = new ObjectSerializationCache();
            var output = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(output), cache, version);
            return HexFormat.of().formatHex(output.array(), 0, output.position());
        } catch (Exception e) {
            return e.toString().replace('\\n', ' ');
        }
    }
}
"""


def java_class(name: str) -> str:
    head, _ = schema.heads()[name]
    if head.table in GENERATED:
        return f"{GENERATED[head.table]}.{name}"
    return ELSEWHERE.get(name, f"common.message.{name}{'' if head.kind == 'data' else 'Data'}")


def encodings(name: str, version: int) -> list[bytes]:
    found = [encode(full(schema.message(name), version), version)]

    @settings(QUICK, max_examples=2)
    @given(message(name, version))
    def collect(value: object) -> None:
        found.append(encode(value, version))

    collect()
    return [data for data in found if len(data) < 10_000]


@pytest.mark.needs("java")
def test_kafkas_classes_read_what_we_write_and_write_the_same(kafka_libs: Path, tmp_path: Path) -> None:
    cases = [(name, version, data) for name, version in EVERY for data in encodings(name, version)]
    program = tmp_path / "Echo.java"
    program.write_text(PROGRAM)
    lines = "".join(f"{java_class(name)} {version} {data.hex()}\n" for name, version, data in cases)
    command = ["java", "-cp", f"{kafka_libs}/*", str(program)]
    echoes = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    for (name, version, data), echo in zip(cases, echoes, strict=True):
        assert echo == data.hex(), (name, version)

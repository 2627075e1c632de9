"""`python -m moldau.cli.kafka.page`: the page docs/kafka-tools.md, its tables made from those of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.cli import kafka
from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Tool
from moldau.cli.kafka.subcommands import ParsedTool

HEAD = r"""
# Kafka's command lines

What the books say works: Kafka's own tools are here under their own names, with the flags, the output and the exit
codes of Apache Kafka 4.3, so that scripts which parse them go on. They are written in Python and work on any Kafka.
`kafka-topics`, `kafka-topics.sh` and `moldau kafka-topics` are the same. The examples below are run by a test.

```sh
kafka-topics --bootstrap-server localhost:9092 --create --topic orders --partitions 3
kafka-topics --bootstrap-server localhost:9092 --describe --topic orders
echo '1:book' | kafka-console-producer --bootstrap-server localhost:9092 --topic orders \
    --reader-property parse.key=true --reader-property key.separator=:
kafka-console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning \
    --max-messages 1 --group billing --formatter-property print.key=true
kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing
kafka-consumer-groups --bootstrap-server localhost:9092 --reset-offsets --group billing \
    --topic orders --to-earliest --execute
kafka-configs --bootstrap-server localhost:9092 --alter --topic orders --add-config retention.ms=3600000
kafka-get-offsets --bootstrap-server localhost:9092 --topic orders
```

Without a JVM they start quickly: `kafka-topics --list` takes about 0.3 s where Kafka's own takes 1.5 s. For daily work
`moldau topic`, `moldau consume` and the others are shorter; see `moldau --help`.

## How they are checked
`make conformance` runs Kafka's tools and these on one broker and compares what they print, line by line
(`tests/conformance/kafka_tools/cases.py` has the command lines). Where both differ on purpose:

- `--help` describes flags in words of our own. Traces of Java's stack are not printed; the first line of them is.
- Lines that Kafka prints in the order of a hash table may change places where two names share a slot.
- `--broker-list`, which Kafka 4 has removed, still works in `kafka-console-producer`, `kafka-avro-console-producer` and
  `kafka-get-offsets`, with a warning on standard error. `--zookeeper` is refused with the flag to use instead, and a
  misspelt flag with the one that is most like it.
- What waits a minute for a topic that is not there (`kafka-delete-records`, `kafka-transactions describe-producers`)
  says at once that it is not there.
- `kafka-storage format` writes `meta.properties`; a broker of Moldau makes the rest when it starts.
- Classes of Java (formatters, readers, decoders, deserializers of one's own) cannot be run; those of Kafka are known by
  their names, and of Confluent's the Avro ones, by `kafka-avro-console-producer` and `-consumer`.

## Settings of clients
`--command-config`, `--command-property` and their older names take the settings of Java clients. `sasl.jaas.config` is
understood for PLAIN and SCRAM; `ssl.truststore.location` and `ssl.keystore.location` are PEM files, with
`ssl.truststore.type=PEM`. JKS and PKCS 12 are refused with a sentence that says how to convert them. Names that no
client has a use for are let pass, as Kafka does.

## Tools and flags
"""


def markdown() -> str:
    """The whole page."""
    return HEAD.lstrip() + "".join(_section(name) for name in sorted(kafka.TOOLS)) + _elsewhere()


def _elsewhere() -> str:
    rows = [f"| `{name}` | {instead} |" for name, instead in sorted(kafka.ELSEWHERE.items())]
    return "\n".join(("\n## Tools that are not here", "| tool | instead |", "|---|---|", *rows, ""))


def _section(name: str) -> str:
    tool = kafka.find(name)
    if isinstance(tool, Tool):
        return f"\n### {name}\n{tool.about}\n\n{_table(tool.flags)}"
    if isinstance(tool, ParsedTool):
        parts = [f"\n### {name}\n{tool.about}\n", f"\n{_table(tool.flags)}" if tool.flags else ""]
        for command in tool.commands:
            parts.append(f"\n`{command.name}`: {command.help}\n")
            parts.append(f"\n{_table(command.flags)}" if command.flags else "")
        return "".join(parts)
    return f"\n### {name}\n{type(tool).__doc__}\n"


def _table(flags: Iterable[Flag]) -> str:
    rows = ["| flag | | what it does |", "|---|---|---|", *_rows(flags)]
    return "\n".join(rows) + "\n"


def _rows(flags: Iterable[Flag]) -> Iterator[str]:
    for flag in sorted(flags, key=lambda one: one.name):
        since = f" Since {flag.since}." if flag.since else ""
        needed = " Needed." if flag.required else ""
        cells = (f"`--{flag.name}`", flag.argument, usage.words(flag) + since + needed)
        yield (
            "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ") for cell in cells) + " |"
        )


if __name__ == "__main__":
    print(markdown(), end="")

"""Makes the page docs/kafka-tools.md from the flags of the tools: `python -m moldau.cli.kafka.page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.cli import kafka
from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Tool
from moldau.cli.kafka.running import Script
from moldau.cli.kafka.subcommands import ParsedTool

HEAD = r"""
# Kafka's command lines

What the books say works: Kafka's own tools exist here under their own names, with the flags, the output and the exit
codes of Apache Kafka 4.3, so that scripts that parse it keep working. They are written in Python and work on any Kafka.
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
`make conformance` runs Kafka's tools and these on one broker and compares their output, line by line
(`tests/conformance/kafka_tools/cases.py` has the command lines). They differ on purpose as follows:

- `--help` describes flags in our own words. Of Java's stack traces only the first line is printed.
- Lines that Kafka prints in the order of a hash table may change places where two names share a slot.
- `--broker-list`, which Kafka 4 has removed, still works in `kafka-console-producer`, `kafka-avro-console-producer` and
  `kafka-get-offsets`, with a warning on standard error. `--zookeeper` is refused with the flag to use instead, and a
  misspelt flag with the one that is most like it.
- Tools that wait a minute for a missing topic (`kafka-delete-records`, `kafka-transactions describe-producers`) fail at
  once.
- `kafka-storage format` writes the same files and records as Kafka's, with every flag. A file of settings without
  `process.roles`, or without a controller listener in `listeners`, is that of a Moldau broker that stays alone; it
  needs none of the flags for a quorum. The salts and keys of `--add-scram` are not printed, an IPv6 address of a
  listener works with `--standalone`, ids of clusters have no blanks, and levels that Kafka calls unstable do not exist.
- Java classes of your own (formatters, readers, decoders, deserializers) cannot run. Kafka's classes are known by their
  names, and so are Confluent's for Avro, in `kafka-avro-console-producer` and `-consumer`.

## Settings of clients
`--command-config`, `--command-property` and their older names take the settings of Java clients. `sasl.jaas.config` is
understood for PLAIN, SCRAM (also with `tokenauth`) and OAUTHBEARER; stores may be JKS, PKCS 12 or PEM. Names that no
client uses are ignored, as in Kafka.

## Tools and flags
"""


def markdown() -> str:
    """Return the whole page."""
    return HEAD.lstrip() + "".join(_section(name) for name in sorted(kafka.TOOLS)) + _elsewhere()


def _elsewhere() -> str:
    rows = [f"| `{name}` | {instead} |" for name, instead in sorted(kafka.ELSEWHERE.items())]
    return "\n".join(("\n## Tools that do not exist here", "| tool | instead |", "|---|---|", *rows, ""))


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
    assert isinstance(tool, Script)
    return f"\n### {name}\n{tool.about}\n"


def _table(flags: Iterable[Flag]) -> str:
    rows = ["| flag | | what it does |", "|---|---|---|", *_rows(flags)]
    return "\n".join(rows) + "\n"


def _rows(flags: Iterable[Flag]) -> Iterator[str]:
    for flag in sorted(flags, key=lambda one: one.name):
        since = f" Since {flag.since}." if flag.since else ""
        needed = " Required." if flag.required else ""
        cells = (f"`--{flag.name}`", flag.argument, usage.words(flag) + since + needed)
        yield (
            "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ") for cell in cells) + " |"
        )


if __name__ == "__main__":
    print(markdown(), end="")

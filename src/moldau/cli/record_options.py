"""Options that `moldau produce` and `moldau consume` share: what keys and values are, and what stands between them."""

from __future__ import annotations

from typing import Annotated

import typer

from moldau.records.formats import FORMATS

FORMS = f"{', '.join(FORMATS)}; registry, to read, takes what the schema says."

KeyFormat = Annotated[str, typer.Option("--key-format", help="As --value-format.")]
KeySchema = Annotated[str | None, typer.Option("--key-schema", metavar="FILE|ID|latest", help="As --value-schema.")]
ValueFormat = Annotated[str, typer.Option("--value-format", "-s", help=FORMS)]
ValueSchema = Annotated[
    str | None,
    typer.Option("--value-schema", metavar="FILE|ID|latest", help="To write, or to read as if written with it."),
]
ValueMessage = Annotated[str | None, typer.Option("--value-message", help="Which Protobuf message of the schema.")]
Strategy = Annotated[str | None, typer.Option("--subject-strategy", help="TOPIC, RECORD or TOPIC_RECORD.")]
KeyDelimiter = Annotated[
    str | None, typer.Option("--key-delimiter", "-K", help="What stands between key and value; no keys without.")
]
Delimiter = Annotated[str, typer.Option("--delimiter", "-D", help="What stands behind a record.")]
Files = Annotated[
    list[str] | None, typer.Option("--file", "-l", help="Read lines from here instead of stdin; repeatable.")
]
FixedHeaders = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="Of all records; repeatable.")
]
TransactionalId = Annotated[
    str | None, typer.Option("--transactional-id", help="All in one transaction; an error or Ctrl-C undoes it.")
]
Count = Annotated[int | None, typer.Option("--count", "-c", min=0, help="Stop after so many.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not tell how many there were.")]
Start = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        "-o",
        "--from",
        metavar="POSITION",
        help="beginning, end, an offset, -N (of the end), s@TIME, e@TIME (to end at); or json, as -J.",
    ),
]

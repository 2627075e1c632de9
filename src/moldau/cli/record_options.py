"""Options that `moldau produce` and `moldau consume` share: the formats of keys and values, and delimiters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from moldau.cli.options import option
from moldau.records.formats import FORMATS, Wanted

FORMS = f"Format of values: {', '.join(FORMATS)}; registry, for reading, takes the format of the schema."

KeyDelimiter = Annotated[
    str | None, typer.Option("--key-delimiter", "-K", help="Text between key and value; without it there are no keys.")
]
Delimiter = Annotated[str, typer.Option("--delimiter", "-D", help="Text after each record.")]
Count = Annotated[int | None, typer.Option("--count", "-c", min=0, help="Stop after this many records.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print the number of records at the end.")]


@dataclass(slots=True)
class Formats:
    """The formats of keys and values."""

    key_format: str = option("--key-format", "Format of keys, as --value-format.", "string")
    key_schema: str | None = option("--key-schema", "Schema of keys, as --value-schema.", metavar="FILE|ID|latest")
    value_format: str = option("--value-format -s", FORMS, "string")
    value_schema: str | None = option(
        "--value-schema", "Write with this schema, or read as if written with it.", metavar="FILE|ID|latest"
    )
    value_message: str | None = option("--value-message", "Name of the Protobuf message in the schema.")

    def key(self, strategy: str | None = None) -> Wanted:
        return Wanted(self.key_format, self.key_schema, None, strategy)

    def value(self, strategy: str | None = None) -> Wanted:
        return Wanted(self.value_format, self.value_schema, self.value_message, strategy)

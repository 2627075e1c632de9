"""Where records, converters and transforms deviate from Connect's; docs/deviations.md is made of this table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    what: str
    connect: str
    moldau: str
    message: str = ""  # a part of our refusal, by which the judge knows it


DEVIATIONS = (
    Deviation(
        "An object of an unexpected class",
        "fails with NullPointerException, ClassCastException, IndexOutOfBoundsException or NumberFormatException",
        "DataException, or IllegalArgumentException, with a sentence",
    ),
    Deviation(
        "Patterns of SimpleDateFormat that name a day by its week (Y, w, W, F, or E and u without a date)",
        "formatted and parsed",
        "formatted; parsing is refused",
        "Weeks can be formatted but not parsed",
    ),
    Deviation("Time zones in a date that is parsed", "any name", "UTC, GMT and offsets; names are refused"),
    Deviation("A wrong `timestamp.format` of TimestampRouter", "fails at the first record", "refused with the config"),
    Deviation(
        "Regular expressions that Python cannot execute",
        "executed",
        "refused with the config: the flags d, m, u and x, `\\G`, `\\X`, classes of Unicode (`\\p{L}`), lookbehind "
        "of varying width, references to groups that do not exist",
    ),
    Deviation("An undefined predicate of a transform", "not noticed before the task starts", "refused with the config"),
    Deviation("Two fields that ReplaceField renames to the same name", "Java's hashes decide", "the last one wins"),
    Deviation("Bytes as text by StringConverter", "the address of the array", "refused"),
    Deviation("Invalid bytes in a string", "as many U+FFFD as Java's decoder counts", "as many as Python's counts"),
    Deviation("JSON numbers with leading zeros", "read", "refused"),
    Deviation("A map as a key of a map", "allowed", "refused"),
    Deviation("The text of floats", "on Java 18 and before sometimes longer than needed", "the shortest, as Java 19's"),
    Deviation(
        "AvroConverter and JsonSchemaConverter without a schema", "write a schema that allows anything", "refuse"
    ),
    Deviation(
        "ExtractNewRecordState with `delete-to-tombstone` and `drop.fields.header.name`",
        "a delete with that header fails with NullPointerException",
        "a tombstone",
    ),
    Deviation(
        "EventRouter with a payload of JSON that cannot become a struct: an array, a number beyond 64 bits",
        "the text under a schema that does not fit",
        "the text under its own schema",
    ),
)

CHANGES = (  # of MariaDB and MySQL: seen by `make judge-cdc`, or from what Debezium documents
    Deviation(
        "Where the form of a table is known from",
        "a topic with the history of schemas (`schema.history.internal.*`)",
        "the binlog, which must be written with `binlog_row_metadata=FULL`; those settings are ignored",
    ),
    Deviation(
        "`tableChanges` of schema changes",
        "made of the statement",
        "made of the catalogue when the statement is read; types have the lengths that the server gives them",
    ),
    Deviation("INET4 and INET6", "a table that has one is not parsed, and the connector fails", "STRING"),
    Deviation("YEAR 0000", "its snapshot fails", "0"),
    Deviation(
        "Transactions of statements that change schemas",
        "begin and never end; a truncation belongs to one",
        "are not told",
    ),
    Deviation(
        "TIMESTAMP in snapshots",
        "without zeros at the end of the fraction, though with them in the stream",
        "with all digits of the column",
    ),
    Deviation("TIMESTAMP NULL of 0000-00-00 in the stream", "1970-01-01T00:00:00Z, though null in snapshots", "null"),
    Deviation("UUID in the stream", "its bytes are shifted by one; it has no default", "the UUID, and its default"),
    Deviation("A member of an ENUM with a comma in the stream", "has a backslash before it", "is as it is"),
    Deviation("A default with a quote", "has it twice", "has it once"),
    Deviation(
        "A default of BINARY(n) of MySQL that is shorter than n",
        "ends with backslashes and zeros as texts",
        "ends with bytes 0",
    ),
    Deviation(
        "A TIMESTAMP of MySQL with ON UPDATE in `tableChanges`", "is `autoIncremented` and `generated`", "is neither"
    ),
    Deviation("`snapshot.max.threads`", "any number", "1; more are refused"),
    Deviation(
        "`snapshot.mode`",
        "also `recovery`, `configuration_based` and `custom`",
        "those are refused: there is no history to recover",
    ),
    Deviation(
        "`time.precision.mode`",
        "also `isostring`, `microseconds`, `nanoseconds` and `structured`",
        "`adaptive_time_microseconds` and `connect`; others are refused",
    ),
    Deviation(
        "Incremental snapshots",
        "write to the signal table where each chunk begins and ends; a chunk row that changes meanwhile is left out",
        "write nothing; a chunk is sent at its exact position, with all of its rows",
    ),
    Deviation(
        "Signals",
        "by a table, a topic, a file or JMX",
        "by a table (`signal.data.collection`), whose rows are no events",
    ),
    Deviation("`database.ssl.mode` of MariaDB", "`disable` by default", "`preferred` by default"),
    Deviation("BOOLEAN and BOOL", "documented as BOOLEAN", "INT16, for the server keeps TINYINT(1) only"),
    Deviation("JSON of MariaDB", "documented as `io.debezium.data.Json`", "STRING, for the server keeps LONGTEXT only"),
    Deviation("VECTOR", "`io.debezium.data.FloatVector`", "refused by name"),
)

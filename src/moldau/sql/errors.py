"""The refusals of a statement, named as ksqlDB names them, with the place in the text where there is one."""

from __future__ import annotations


class SqlError(Exception):
    """A statement that cannot be executed as it is. `java` is the class that ksqlDB would throw."""

    java = "io.confluent.ksql.util.KsqlException"


class StatementError(SqlError):
    """A refusal that knows the text of its statement."""

    java = "io.confluent.ksql.util.KsqlStatementException"

    def __init__(self, message: str, statement: str = "") -> None:
        super().__init__(f"{message}\nStatement: {statement}" if statement else message)
        self.reason = message
        self.statement = statement


class ParseError(SqlError):
    """A text that is not a statement."""

    java = "io.confluent.ksql.parser.exception.ParseFailedException"

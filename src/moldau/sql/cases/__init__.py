"""Files of query cases in the form of ksqlDB's query-validation-tests: read, run in memory, and compared.

A case has statements, records for topics, and the records that must come out, or the refusal that must come.
"""

from moldau.sql.cases.files import Case, NotCases, read_file
from moldau.sql.cases.running import Outcome, check

__all__ = ["Case", "NotCases", "Outcome", "check", "read_file"]

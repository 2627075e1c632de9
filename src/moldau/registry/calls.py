"""A request as the registry's handlers see it: names, flags, numbers and a body, checked on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau import http
from moldau.http import HttpError, audit
from moldau.registry import names
from moldau.registry.commands import Candidate, Registry
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.metadata import checked_metadata, checked_rules
from moldau.registry.records import AVRO, Json
from moldau.registry.store import LATEST
from moldau.registry.subject_rules import READ, SubjectRules
from moldau.serdes.schemas import Reference
from moldau.settings import ServiceSettings

HIGHEST = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class Call(http.Call):
    """A request to an endpoint of the registry."""

    registry: Registry
    settings: ServiceSettings
    rules: SubjectRules
    cluster_id: str = ""
    is_led: bool = True

    def may_read(self, subject: str) -> bool:
        return self.rules.allow(self.caller, READ, subject)

    def check(self, operation: str, subject: str) -> None:
        """Refuse what the caller may not do with a subject."""
        if not self.rules.allow(self.caller, operation, subject):
            audit.refused(self.request, self.caller, f"{operation} on subject {subject}")
            raise refuse(40301, operation, f"Subject: {subject}")

    @property
    def subject(self) -> str:
        return names.normal(self.path["subject"])

    @property
    def place(self) -> str | None:
        """The subject or context of a setting; None is the default context."""
        subject = self.path.get("subject")
        return None if names.is_top(subject) else names.normal(subject or "")

    @property
    def version(self) -> int:
        """The version in the path; -1 is the latest."""
        text = self.path["version"]
        if text == "latest":
            return LATEST
        number = int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else 0
        if number != LATEST and not 0 < number <= HIGHEST:
            raise refuse(42202, text)
        return number

    @property
    def id(self) -> int:
        text = self.path["id"]
        if not (text.isdecimal() and int(text) <= HIGHEST):
            raise HttpError(404)
        return int(text)

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def page(self, found: list[Any], kind: str) -> list[Any]:
        """Return the part of a list that `offset` and `limit` ask for, within the settings."""
        offset, limit = self._number("offset", 0), self._number("limit", -1)
        if offset < 0:
            raise unprocessable("offset must not be negative.")
        if limit < 0:
            limit = self.settings[f"{kind}.search.default.limit"]
        return found[offset : offset + min(limit, self.settings[f"{kind}.search.max.limit"])]

    def _number(self, name: str, default: int) -> int:
        text = self.query.get(name)
        if text is None or text == "":
            return default
        if not text.removeprefix("-").isdecimal() or len(text) > 10:
            raise HttpError(404)  # what Confluent answers to a number that is none
        return int(text)

    def object(self) -> Json:
        """Return the body, which must be a JSON object."""
        if not isinstance(self.body, dict):
            raise unprocessable("The body must be a JSON object.")
        return self.body

    def candidate(self) -> Candidate:
        """Return the schema in the body."""
        body = self.object()
        references = tuple(map(_reference, field_of(body, "references", list) or ()))
        for reference in references:
            self.check(READ, names.within(self.subject, reference.subject))
        return Candidate(
            schema=field_of(body, "schema", str),
            type=field_of(body, "schemaType", str) or AVRO,
            references=references,
            metadata=checked_metadata(body.get("metadata")),
            rules=checked_rules(body.get("ruleSet")),
            version=field_of(body, "version", int) or 0,
            id=LATEST if field_of(body, "id", int) is None else body["id"],
        )


def field_of(body: Json, name: str, kind: type) -> Any:
    """Return a field of a body, or None without it; refuse one that is of another kind."""
    value = body.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise unprocessable(f"{name} cannot be {value!r}.")
    if isinstance(value, int) and not -1 <= value <= HIGHEST:
        raise unprocessable(f"{name} cannot be {value}.")
    return value


def _reference(row: Any) -> Reference:
    if not isinstance(row, dict):
        raise unprocessable("A reference has a name, a subject and a version.")
    name, subject, version = field_of(row, "name", str), field_of(row, "subject", str), field_of(row, "version", int)
    if name is None or subject is None or version is None:
        raise unprocessable("A reference has a name, a subject and a version.")
    return Reference(name, subject, version)

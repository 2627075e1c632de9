"""The registry's error codes, as rows: what each says. The HTTP status is the first three digits."""

from __future__ import annotations

from moldau.http import HttpError

# The sentences that clients and scripts look for are those of Confluent's registry, word for word.
MESSAGES = {
    40301: "User is denied operation {} on {}.",
    40401: "Subject '{}' not found.",
    40402: "Version {} not found.",
    40403: "Schema {} not found",
    40404: "Subject '{}' was soft deleted.Set permanent=true to delete permanently",
    40405: "Subject '{}' was not deleted first before being permanently deleted",
    40406: "Subject '{}' Version {} was soft deleted.Set permanent=true to delete permanently",
    40407: "Subject '{}' Version {} was not deleted first before being permanently deleted",
    40408: "Subject '{}' does not have subject-level compatibility configured",
    40409: "Subject '{}' does not have subject-level mode configured",
    40901: 'Schema being registered is incompatible with an earlier schema for subject "{}", details: {}',
    42201: "{}",
    42202: "The specified version '{}' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"',
    42203: "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
    "forward_transitive, and full_transitive",
    42204: "Invalid mode: give READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD.",
    42205: "{}",
    42206: "One or more references exist to the schema {}.",
    42208: "The specified subject '{}' is not a valid.",
    42209: "The schema is larger than is allowed: {}",
    42210: "{}",
    42211: "Context '{}' still has subjects.",
    50001: "The topic of schemas does not answer: {}",
    50002: "{} took too long.",
    50003: "The leader could not be asked: {}",
    50004: "There is no leader just now.",
}


def refuse(code: int, *parts: object) -> HttpError:
    """Return the error of a code, with what it is about."""
    return HttpError(code, MESSAGES[code].format(*parts))


def unknown_schema() -> HttpError:
    """Return the error 40403 for a schema whose text was sent."""
    return HttpError(40403, "Schema not found")


def unprocessable(sentence: str) -> HttpError:
    """Refuse a body that is JSON, but not what the endpoint takes: status and code are Confluent's."""
    return HttpError(422, sentence)

"""The registry's error codes, as rows: what each says. The HTTP status is the first three digits."""

from __future__ import annotations

from moldau.http import HttpError

MESSAGES = {
    40401: "There is no subject '{}'.",
    40402: "There is no version {}.",
    40403: "There is no schema {}.",
    40404: "Subject '{}' is soft-deleted; permanent=true deletes it for good.",
    40405: "Subject '{}' has to be soft-deleted before it is deleted for good.",
    40406: "Version {1} of subject '{0}' is soft-deleted; permanent=true deletes it for good.",
    40407: "Version {1} of subject '{0}' has to be soft-deleted before it is deleted for good.",
    40408: "Subject '{}' has no compatibility level of its own.",
    40409: "Subject '{}' has no mode of its own.",
    40901: "The schema does not go with earlier versions of subject '{}': {}",
    42201: "{}",
    42202: "'{}' is no version: give a number from 1 to 2147483647, or 'latest'.",
    42203: "There is no such compatibility level: give NONE, BACKWARD, FORWARD or FULL, the last three also with "
    "_TRANSITIVE.",
    42204: "There is no such mode: give READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD.",
    42205: "{}",
    42206: "Other schemas refer to {}.",
    42208: "'{}' cannot be the name of a subject.",
    42209: "The schema is larger than is allowed: {}",
    42210: "{}",
    42211: "Context '{}' still has subjects.",
    50001: "The topic of schemas does not answer: {}",
    50002: "{} took too long.",
    50003: "The leader could not be asked: {}",
    50004: "There is no leader just now.",
}


def refuse(code: int, *parts: object) -> HttpError:
    """The error of a code, with what it is about."""
    return HttpError(code, MESSAGES[code].format(*parts))


def unprocessable(sentence: str) -> HttpError:
    """A body that is JSON, and not what the endpoint wants: status and code as Confluent has them."""
    return HttpError(422, sentence)

"""The error codes of keys, as rows: what each says. The HTTP status is the first three digits."""

from __future__ import annotations

from moldau.http import HttpError

# The sentences that clients and scripts look for are those of Confluent's registry, word for word.
MESSAGES = {
    40470: "Key '{}' not found",
    40471: "Key '{}' was not deleted first before being permanently deleted",
    40472: "Key '{}' must be undeleted first",
    40971: "Key '{}' already exists; use a different value",
    40972: "A maximum of {} keys already exist",
    42271: "Invalid or missing value for field '{}' of key",
    42272: "One or more references exist to the key '{}'",
    50070: "The key management service cannot be used: {}",
}


def refuse(code: int, *parts: object) -> HttpError:
    """Return the error of a code, with what it is about."""
    return HttpError(code, MESSAGES[code].format(*parts))

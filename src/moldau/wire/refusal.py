"""An expected refusal: the code that goes into the response, and a sentence that says what is wrong."""

from __future__ import annotations

from moldau.wire.errors import Error


class Refused(Exception):
    """A request, or one item of it, that is answered with an error. `record_errors` are (index in batch, why)."""

    def __init__(self, error: Error, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.record_errors = record_errors

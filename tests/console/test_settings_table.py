"""When a setting that was changed is seen as it was wanted."""

from __future__ import annotations

import pytest

from moldau.admin.configs import Change, Entry, Operation
from moldau.console.settings_table import is_so

OWN, DEFAULT = "DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"


def entry(value: str | None, source: str, *, sensitive: bool = False) -> Entry:
    return Entry("retention.ms", value, source, False, sensitive, "LONG", (), None)


@pytest.mark.parametrize(
    ("now", "wanted", "seen"),
    [
        (entry("5", OWN), Change("retention.ms", "5"), True),
        (entry("5", OWN), Change("retention.ms", " 5 "), True),
        (entry("4", OWN), Change("retention.ms", "5"), False),
        (entry("5", DEFAULT), Change("retention.ms", "5"), False),
        (entry(None, OWN, sensitive=True), Change("retention.ms", "secret"), True),
        (entry("5", OWN), Change("retention.ms", None, Operation.DELETE), False),
        (entry("4", DEFAULT), Change("retention.ms", None, Operation.DELETE), True),
    ],
)
def test_a_change_is_seen_where_the_setting_is_as_it_was_wanted(now: Entry, wanted: Change, seen: bool) -> None:
    assert is_so([now], wanted) is seen

"""The scripts, in the order they are played. Each makes its own topics, and leaves the settings as it found them."""

from __future__ import annotations

from tests.conformance.differential.case import Script
from tests.conformance.differential.scripts import consumer_groups, fetch, produce

SCRIPTS: tuple[Script, ...] = (produce.SCRIPT, produce.IDEMPOTENT, fetch.SCRIPT, fetch.SESSIONS, consumer_groups.SCRIPT)

"""The group of verbs that the files of this package add theirs to."""

from __future__ import annotations

from moldau.cli.commands import noun

cli, verb = noun()

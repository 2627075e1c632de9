"""The noun `streams`, to which the modules of this package add their verbs."""

from moldau.cli.commands import noun

cli, verb = noun()

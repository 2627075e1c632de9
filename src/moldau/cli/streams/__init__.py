"""`moldau streams`: runs, deploys, lists, describes, queries and resets streams applications."""

from moldau.cli.streams import applications, deployed
from moldau.cli.streams.verbs import cli

__all__ = ["applications", "cli", "deployed"]

"""Expected errors as sentences, with what to do about them."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.admin.mistakes import Mistake
from moldau.admin.resets import ResetError
from moldau.client import ClientError, Error
from moldau.flows.definition import FlowError
from moldau.serdes.context import SerdeError
from moldau.serdes.registry import RegistryError
from moldau.sql.shell.remote import RemoteError

AWAY = {Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT, Error.BROKER_NOT_AVAILABLE}
DENIED = {
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.SASL_AUTHENTICATION_FAILED,
}


class Refused(Exception):
    """A refusal by the console itself: a sentence that says why."""


EXPECTED = (ClientError, SerdeError, Refused, Mistake, ResetError, FlowError, RemoteError)


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence, and what to do."""

    sentence: str
    remedy: str = ""


def problem(error: Exception, bootstrap_servers: str, registry_url: str) -> Problem:
    """Return an expected error as a sentence, with a remedy if there is one."""
    match error:
        case RegistryError():
            remedy = f"The rest of the console still works. Is there a Schema Registry at {registry_url}?"
            return Problem(str(error), remedy)
        case ClientError() if error.error in AWAY:
            return Problem(
                f"The brokers at {bootstrap_servers} do not answer: {error}",
                "Start them with `moldau up`, or start the console with --bootstrap-servers, and try again.",
            )
        case ClientError() if error.error in DENIED:
            return Problem(str(error), "The console's user needs an ACL for that: `moldau acl add` adds one.")
        case ClientError() if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return Problem(str(error), "The page Topics lists those that exist.")
        case RemoteError() if not error.code:
            remedy = "The rest of the console still works. `moldau up` starts a SQL server, and --sql names another."
            return Problem(str(error), remedy)
        case _:
            return Problem(str(error))

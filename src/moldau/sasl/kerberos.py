"""GSSAPI (RFC 4752): Kerberos, by the system's libraries. No security layer is offered: that is what TLS is for.

A broker accepts with the keys of its keytab and never asks the KDC. A client asks it for tickets, which blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

from moldau import extras
from moldau.sasl.kerberos_names import NoLocalName
from moldau.sasl.outcome import Admitted, Denied, Exchange, LoginFailed
from moldau.sasl.scram import invalid_credentials

MECHANISM = "GSSAPI"
NO_LAYER = 1  # the bit for authentication alone
OFFER = bytes((NO_LAYER, 0, 0, 0))  # the bits, and the largest message of a layer
MOST_STEPS = 4  # Kerberos needs one, or two


class KerberosError(LoginFailed):
    """A failure of the system's libraries, or of the other side, in one sentence."""


def require() -> None:
    extras.require("kerberos", "Kerberos", "gssapi")


def _library() -> Any:
    return import_module("gssapi")


def accept_credentials(principal: str, keytab: str) -> Any:
    """Return the credentials of a service from its keytab; raises KerberosError."""
    gssapi = _library()
    return _called(
        gssapi.Credentials,
        name=gssapi.Name(principal, gssapi.NameType.kerberos_principal),
        usage="accept",
        mechs=[gssapi.MechType.kerberos],
        store={"keytab": keytab},
    )


def acceptor(credentials: Any) -> Any:
    """Return the server's half of a context."""
    gssapi = _library()
    return _strict(gssapi.SecurityContext(creds=credentials, usage="accept"))


def initiator(service: str, host: str, principal: str, keytab: str) -> Any:
    """Return the client's half of a context: with the tickets that the user has, or with those of a keytab."""
    gssapi = _library()
    credentials = None
    if keytab:
        # A cache in memory for each principal: the KDC is asked once, and again when the tickets end. Whoever has
        # another keytab has another cache: tickets that somebody else was given must not let them in.
        store = {"client_keytab": keytab, "ccache": f"MEMORY:moldau-{principal}-{keytab}"}
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        credentials = _called(gssapi.Credentials, name=name, usage="initiate", store=store)
    elif principal:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        credentials = _called(gssapi.Credentials, name=name, usage="initiate")
    context = gssapi.SecurityContext(
        name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
        creds=credentials,
        mech=gssapi.MechType.kerberos,
        flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity],
        usage="initiate",
    )
    return _strict(context)


def _strict(context: Any) -> Any:
    """Let a step that fails raise at once; otherwise it returns a token for the other side, and fails later."""
    context.__DEFER_STEP_ERRORS__ = False
    return context


def default_realm() -> str:
    """Return the realm of names that have none; empty if the system's configuration names none."""
    gssapi = _library()
    name = gssapi.Name("x", gssapi.NameType.kerberos_principal)
    try:
        return str(_called(name.canonicalize, gssapi.MechType.kerberos)).partition("@")[2]
    except KerberosError:
        return ""


def server(make_context: Callable[[], Any], name_of: Callable[[str], str], report: Callable[[str], None]) -> Exchange:
    """Accept a context; `name_of` makes a user's name of a principal, and `report` gets the reason of a failure.

    The authorization id that a client sends has no effect, as in Kafka: whoever authenticated is who it is.
    """
    message, token = (yield b""), b""
    try:
        context = make_context()
        for _ in range(MOST_STEPS):
            token = _called(context.step, message)
            if context.complete:
                break
            message = yield token or b""
        else:
            raise KerberosError("the context takes too many steps")
        if token and (yield token):
            raise KerberosError("a message came where none belongs")
        chosen = _called(context.unwrap, (yield _called(context.wrap, OFFER, False).message)).message
        if len(chosen) < len(OFFER) or chosen[0] != NO_LAYER:
            raise KerberosError("it asked for a security layer")
        return Admitted(name_of(str(_called(lambda: context.initiator_name))))
    except (KerberosError, NoLocalName) as error:
        report(str(error))
        raise Denied(invalid_credentials(MECHANISM)) from None


def client(context: Any) -> Generator[bytes, bytes, None]:
    """Open a context, and choose no security layer; raises KerberosError."""
    token = _called(context.step)
    while not context.complete:
        token = _called(context.step, (yield token or b""))
    offer = _called(context.unwrap, (yield token or b"")).message
    if len(offer) != len(OFFER) or not offer[0] & NO_LAYER:
        raise KerberosError("the broker asks for a security layer, which is not supported")
    yield _called(context.wrap, OFFER, False).message


def _called(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function of the system's libraries; raises KerberosError."""
    try:
        return function(*arguments, **named)
    except _library().exceptions.GSSError as error:
        raise KerberosError(" ".join(str(error).split())) from error

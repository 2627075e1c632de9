"""The authorizer that the settings ask for, and how a client's host is written in an access control entry."""

from __future__ import annotations

import ipaddress

from moldau.machines.acls import Acls
from moldau.machines.authorizer import Authorizer
from moldau.settings import Settings


def make_authorizer(settings: Settings, acls: Acls) -> Authorizer | None:
    """None where everybody may do everything. That the class is one we know was checked with the settings."""
    if not settings["authorizer.class.name"]:
        return None
    users = (user.strip() for user in settings["super.users"].split(";"))
    return Authorizer(acls, filter(None, users), settings["allow.everyone.if.no.acl.found"])


def host_of(peer: str) -> str:
    """The address of `address:port` as Java writes it, which is how hosts stand in access control entries."""
    text = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if address.version == 4:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(group.lstrip("0") or "0" for group in address.exploded.split(":"))

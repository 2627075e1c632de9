"""The authorizer that the settings ask for, what is not heeded yet, and how a client's host is written in an entry."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.machines.metadata.acls import Acls
from moldau.machines.metadata.authorizer import Authorizer
from moldau.machines.metadata.cluster import Cluster
from moldau.settings import Settings


def make_authorizer(settings: Settings, acls: Acls) -> Authorizer | None:
    """Make the authorizer, None where everybody may do everything. The settings have checked the class."""
    if not settings["authorizer.class.name"]:
        return None
    users = (user.strip() for user in settings["super.users"].split(";"))
    return Authorizer(acls, filter(None, users), settings["allow.everyone.if.no.acl.found"])


def list_unheeded(cluster: Cluster, authorizer: Authorizer | None) -> Iterator[str]:
    """Yield a warning for each thing in the metadata that this broker does not do yet."""
    for name in sorted(cluster.unsupported):
        yield f"the metadata has records that this release does not obey: {name}"
    if cluster.acls.by_id and authorizer is None:
        yield "there are access control entries, but authorizer.class.name is empty: everybody may do everything"


def host_of(peer: str) -> str:
    """Return the address of `address:port` as Java writes it, which is how hosts stand in access control entries."""
    text = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    if ":" not in text:
        return text
    import ipaddress  # late: most hosts do not need it

    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(group.lstrip("0") or "0" for group in address.exploded.split(":"))

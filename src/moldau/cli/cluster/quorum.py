"""`moldau cluster quorum` and `moldau cluster voters`: the nodes that keep the metadata and elect the controller."""

from __future__ import annotations

from typing import Any

from moldau.admin import clusters, voters
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.cluster.verbs import cli, verb
from moldau.cli.commands import noun
from moldau.cli.kafka.java_text import base64_id
from moldau.cli.options import argument, flag, option
from moldau.cli.output import pick, time_of
from moldau.cli.session import Session
from moldau.settings import read_properties

NO_DIRECTORY = bytes(16)
voters_cli, of_voters = noun()
cli.add_typer(voters_cli, name="voters", help="Add controllers to the quorum, and remove them.")
COLUMNS = ("id", "role", "log_end_offset", "lag", "last_caught_up", "directory", "endpoints")


@verb("quorum", "moldau cluster quorum", "moldau cluster quorum -o json")
def quorum(session: Session) -> None:
    """Show the voters and observers of the metadata, and how far each is behind the leader."""
    state = clusters.quorum(session.client)
    rows = [_replica(state, one) for one in state.replicas]
    if session.for_people:
        session.show(pick(state, "leader", "leader_epoch", "high_watermark"))
        print()
        session.show(rows, COLUMNS)
    else:
        session.show({**pick(state, "leader", "epoch=leader_epoch", "high_watermark"), "replicas": rows})


def _replica(state: clusters.Quorum, one: clusters.Replica) -> dict[str, Any]:
    return {
        "id": one.id,
        "role": "leader" if one.id == state.leader else "voter" if one.is_voter else "observer",
        "log_end_offset": one.log_end_offset,
        "lag": state.lag(one),
        "last_fetched": time_of(one.last_fetch_ms),
        "last_caught_up": time_of(one.last_caught_up_ms),
        "directory": None if one.directory_id == NO_DIRECTORY else base64_id(one.directory_id),
        "endpoints": list(state.endpoints.get(one.id, ())) or None,
    }


@of_voters(
    "add",
    "moldau cluster voters add --config controller.properties  (on the machine of the new controller)",
    "moldau cluster voters add 3 --endpoint CONTROLLER://10.0.0.3:9093",
)
def add(
    session: Session,
    node: int | None = argument("The id of the controller; its directory is that of the observer.", None, metavar="ID"),
    config: str | None = option("--config", "Read id, directory and listeners from the controller's settings."),
    endpoint: list[str] | None = option("--endpoint", "Where the controller listens; repeatable.", metavar="URL"),
    dry_run: bool = flag("--dry-run", "Show what would be added; change nothing."),
) -> None:
    """Let a controller vote that follows the quorum as an observer.

    The file of its settings is found on its own machine, as with Kafka's tool. From elsewhere give the id and the
    listener: the id of the directory is what the quorum knows of the observer.
    """
    if (node is None) == (config is None) or (node is not None and not endpoint):
        raise misused("Give either --config, or the id of the controller with --endpoint NAME://HOST:PORT.")
    if config is not None:
        voter = voters.of_settings(_read(config))
    else:
        assert node is not None
        where = tuple(voters.endpoint_of(text) for text in endpoint or ())
        voter = voters.Voter(node, _find(session, node, "an observer"), where)
    if not dry_run:
        voters.add(session.client, voter)
    places = [str(one) for one in voter.endpoints]
    directory = base64_id(voter.directory_id)
    done = "could be added" if dry_run else "votes"
    sentence = f"Controller {voter.id} {done}: directory {directory}, {', '.join(places)}."
    session.done(sentence, id=voter.id, directory=directory, endpoints=places, dry_run=dry_run)


@of_voters(
    "remove", "moldau cluster voters remove 3", "moldau cluster voters remove 3 --directory D_Yv4gHZQYyTVbTyjWSmFA"
)
def remove(
    session: Session,
    node: int = argument("The id of the controller.", metavar="ID"),
    directory: str | None = option("--directory", "The id of its directory, if several voters have the id."),
    dry_run: bool = flag("--dry-run", "Show what would be removed; change nothing."),
) -> None:
    """Take the vote from a controller. The others must still be a majority that is alive."""
    raw = voters.id_of(directory) if directory else _find(session, node, "a voter")
    if not dry_run:
        voters.remove(session.client, node, raw)
    done = "could be removed" if dry_run else "does not vote any more"
    session.done(f"Controller {node} {done}.", id=node, directory=base64_id(raw), dry_run=dry_run)


def _find(session: Session, node: int, what: str) -> bytes:
    """Return the directory of a replica of the quorum: of a voter, or of an observer."""
    known = [
        one.directory_id
        for one in clusters.quorum(session.client).replicas
        if one.id == node and one.is_voter == (what == "a voter")
    ]
    if len(known) != 1:
        many = f"is {what} several times: give --directory" if known else f"is not {what} of the quorum"
        raise Mistake(f"Node {node} {many}. `moldau cluster quorum` shows who is.")
    if known[0] == NO_DIRECTORY:
        raise Mistake("The voters of this cluster are fixed: they can be changed from kraft.version 1 on (KIP-853).")
    return known[0]


def _read(path: str) -> dict[str, str]:
    try:
        return read_properties(path)
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror}.") from None

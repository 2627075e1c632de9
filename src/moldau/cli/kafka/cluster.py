"""kafka-cluster: prints the cluster's id and the endpoints of its brokers, and unregisters a broker."""

from __future__ import annotations

from contextlib import AbstractContextManager

from moldau.admin import clusters
from moldau.admin.clusters import BrokerState
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.running import CONTROLLER, OK, Terse, reach
from moldau.cli.kafka.subcommands import Command, ParsedTool
from moldau.client import Client, ClientError, Error

NO_RACK_WIDTH = 10
OLD_BROKERS = "The target cluster does not support the broker unregistration API."


def cluster_id(options: Options) -> int:
    with connected(options) as client:
        print(f"Cluster ID: {clusters.described(client).id}")
    return OK


def unregister(options: Options) -> int:
    broker = options["id"]
    with connected(options) as client:
        try:
            clusters.unregister(client, broker)
            print(f"Broker {broker} is no longer registered.")
        except ClientError as error:
            if error.error is not Error.UNSUPPORTED_VERSION:
                raise
            print(OLD_BROKERS)
    return OK


def list_endpoints(options: Options) -> int:
    fenced, of_controllers = "include-fenced-brokers" in options, "bootstrap-controller" in options
    if fenced and of_controllers:
        raise Terse("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    with connected(options) as client:
        brokers = clusters.described(client, fenced=fenced).brokers
    print("\n".join(lines(brokers, of_controllers)))
    return OK


def lines(brokers: tuple[BrokerState, ...], of_controllers: bool) -> list[str]:
    """Return a table whose columns of hosts and racks are as wide as the longest of them. Controllers have no state."""
    host = max((len(one.host) for one in brokers), default=100)
    rack = max((len(one.rack) for one in brokers if one.rack), default=NO_RACK_WIDTH)
    widths = {"ID": 10, "HOST": host, "PORT": 10, "RACK": rack, "STATE": 10, "ENDPOINT_TYPE": 15}
    if of_controllers:
        del widths["STATE"]
    rows = [dict(zip(widths, widths, strict=True))]
    for one in brokers:
        row = {"ID": str(one.id), "HOST": one.host, "PORT": str(one.port), "RACK": one.rack or "null"}
        row |= {"STATE": "fenced" if one.is_fenced else "unfenced"}
        rows.append({**row, "ENDPOINT_TYPE": "controller" if of_controllers else "broker"})
    return [" ".join(f"{row[name]:<{width}}" for name, width in widths.items()) for row in rows]


def connected(options: Options) -> AbstractContextManager[Client]:
    if options.given("config") and options.given("command-config"):
        raise Terse("--config and --command-config cannot be specified together.")
    return reach(options)


CONNECTION = (
    Flag("bootstrap-server", "BOOTSTRAP_SERVER", "connect to these brokers", short="b"),
    CONTROLLER,
    Flag("config", "CONFIG", "read settings of the client from a file", deprecated="command-config"),
    Flag("command-config", "COMMAND_CONFIG", "read settings of the client from a properties file", short="c"),
)
ID = Flag("id", "ID", "the id of the broker to unregister", int, required=True, short="i")
FENCED = Flag("include-fenced-brokers", help="list fenced brokers too")

TOOL = ParsedTool(
    "kafka-cluster",
    "kafka-cluster",
    "The Kafka cluster tool.",
    CONNECTION,
    (
        Command("cluster-id", "Get information about the ID of a cluster.", (), cluster_id),
        Command("unregister", "Unregister a broker.", (ID,), unregister),
        Command("list-endpoints", "List endpoints", (FENCED,), list_endpoints),
    ),
    one_of=("bootstrap-server", "bootstrap-controller"),
)

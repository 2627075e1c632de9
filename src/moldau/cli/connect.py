"""`moldau connect`: runs a worker of Connect until it is stopped."""

from __future__ import annotations

from moldau.cli.options import argument, option
from moldau.cli.services import (
    BootstrapServers,
    Config,
    Overrides,
    StartWithUse,
    StopWithStdin,
    run_service,
    settings_of,
)


def cli(
    properties: str | None = argument("Settings of the worker, as Connect's worker.properties.", None, metavar="FILE"),
    config: Config = None,
    bootstrap_servers: BootstrapServers = None,
    listen: str | None = option(
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:8083)", metavar="HOST:PORT"
    ),
    spark_master: str | None = option(
        "--spark-master",
        "The Spark cluster whose executors run connectors; by default this process does.",
        metavar="URL",
    ),
    overrides: Overrides = None,
    start_with_use: StartWithUse = False,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a worker of Connect, which runs connectors together with the other workers of its group.

    When it accepts connections it prints one line, `ready http://HOST:PORT`. Logs go to stderr. `moldau settings
    --scope connect` lists the settings for --set, `moldau connect plugin --help` installs Java plugins.
    """

    def run() -> None:
        from moldau.connect.starting import serve
        from moldau.settings import assignment

        given = dict(map(assignment, settings_of(config or properties, overrides)))
        given |= {"spark.master": spark_master} if spark_master else {}
        serve(
            given,
            bootstrap_servers=bootstrap_servers,
            listen=listen,
            start_with_use=start_with_use,
            stop_with_stdin=stop_with_stdin,
        )

    run_service("connect", run)

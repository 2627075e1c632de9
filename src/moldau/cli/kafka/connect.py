"""connect-distributed, connect-standalone and connect-plugin-path: workers of Connect, and their plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from moldau.cli.kafka.running import FAILED, OK, Script, complain
from moldau.settings import SettingError, read_properties

DISTRIBUTED_USAGE = "USAGE: connect-distributed [-daemon] connect-distributed.properties"
STANDALONE_USAGE = (
    "USAGE: connect-standalone [-daemon] connect-standalone.properties "
    "[connector1.properties connector2.json connector3.properties ...]"
)
PLUGIN_USAGE = "USAGE: connect-plugin-path list"
COLUMNS = ("pluginName", "firstAlias", "secondAlias", "pluginVersion", "pluginType", "isLoadable", "hasManifest")
COLUMNS += ("pluginLocation",)


def distributed(arguments: list[str]) -> int:
    def serve(rest: list[str]) -> None:
        from moldau.connect.starting import serve

        serve(_properties(rest[0]))

    return _run("connect-distributed", DISTRIBUTED_USAGE, arguments, serve, most=1)


def standalone(arguments: list[str]) -> int:
    def serve(rest: list[str]) -> None:
        from moldau.connect.files import read_connector
        from moldau.connect.standalone import serve

        serve(_properties(rest[0]), [read_connector(path) for path in rest[1:]])

    return _run("connect-standalone", STANDALONE_USAGE, arguments, serve)


def _run(name: str, usage: str, arguments: list[str], serve: Callable[[list[str]], None], most: int = 1000) -> int:
    rest = list(arguments)
    daemon = rest[:1] == ["-daemon"]
    rest = rest[1:] if daemon else rest
    if not 1 <= len(rest) <= most or rest[0] in ("--help", "-h"):
        return complain(usage)
    if daemon:
        return _detach(name, rest)
    from moldau.cli.services import log_to_stderr
    from moldau.http import ServeError

    log_to_stderr()
    try:
        serve(rest)
    except ServeError as error:
        return complain(str(error))
    return OK


def _properties(path: str) -> dict[str, str]:
    try:
        return read_properties(path)
    except OSError as error:
        raise SettingError(path, None, f"it cannot be read: {error.strerror or error}") from None


def _detach(name: str, arguments: list[str]) -> int:
    """Start the worker in the background, with its log in a file, as Kafka's script does."""
    folder = os.environ.get("LOG_DIR", "logs")
    os.makedirs(folder, exist_ok=True)
    command = [sys.executable, "-m", "moldau", name, *arguments]
    with open(os.path.join(folder, f"{name.replace('-', '').capitalize()}.out"), "ab") as out:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    return OK


def plugin_path(arguments: list[str]) -> int:
    if arguments[:1] == ["sync-manifests"]:
        print("There are no manifests here: plugins are Python packages, and need none.", file=sys.stderr)
        return FAILED
    if arguments[:1] != ["list"]:
        return complain(PLUGIN_USAGE)
    from moldau.connect import plugins

    print("\t".join(COLUMNS))
    for row in plugins.listed(connectors_only=False):
        simple = row["class"].rpartition(".")[2]
        short = simple.removesuffix("Connector").removesuffix("Converter")
        print("\t".join([row["class"], simple, short, row["version"], row["type"], "true", "true", "moldau"]))
    return OK


DISTRIBUTED = Script("connect-distributed", f"{DISTRIBUTED_USAGE[7:]}: a worker of Connect.", distributed)
STANDALONE = Script("connect-standalone", f"{STANDALONE_USAGE[7:]}: connectors of files in one process.", standalone)
PLUGIN_PATH = Script("connect-plugin-path", f"{PLUGIN_USAGE[7:]}: the plugins that workers have.", plugin_path)

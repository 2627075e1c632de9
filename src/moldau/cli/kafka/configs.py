"""kafka-configs: shows and changes settings, quotas and credentials."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from moldau.admin import configs, groups, quotas, topics, users
from moldau.admin.configs import Kind
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, forbid
from moldau.cli.kafka.java_text import double_text
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, CONTROLLER, FAILED, OK, ZOOKEEPER, Terse, connect
from moldau.client import Client, ClientError
from moldau.client.java_settings import read_file
from moldau.wire.numbers import WORD, hash_order, java_hash

KINDS = {
    "topics": (Kind.TOPIC, "DYNAMIC_TOPIC_CONFIG"),
    "brokers": (Kind.BROKER, "DYNAMIC_BROKER_CONFIG"),
    "broker-loggers": (Kind.BROKER_LOGGER, None),
    "client-metrics": (Kind.CLIENT_METRICS, "DYNAMIC_CLIENT_METRICS_CONFIG"),
    "groups": (Kind.GROUP, "DYNAMIC_GROUP_CONFIG"),
}
TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
QUOTA_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
QUOTA_NAMES = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
WITH_DEFAULTS = ("clients", "users", "brokers", "ips")
WITHOUT_BROKERS = ("topics", "groups", "client-metrics")
# --topic is short for --entity-type topics --entity-name, --user-defaults for --entity-type users --entity-default.
ENTITY_FLAGS = {kind if kind == "client-metrics" else kind.removesuffix("s"): kind for kind in TYPES}
DEFAULT_FLAGS = {f"{kind.removesuffix('s')}-defaults": kind for kind in WITH_DEFAULTS}
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"  # not within brackets
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)


def run(options: Options) -> int:
    check(options)
    try:
        with connect(options) as client:
            if "alter" in options:
                alter(client, options)
            else:
                describe(client, options)
    except ClientError as error:
        print(f"Error while executing config command with args '{' '.join(options.command)}'", file=sys.stderr)
        cause = spoken(error.error, words_of(error))
        print(f"java.util.concurrent.ExecutionException: {cause}", file=sys.stderr)
        return FAILED
    return OK


def entity_types(options: Options) -> list[str]:
    named = [kind for flag, kind in {**ENTITY_FLAGS, **DEFAULT_FLAGS}.items() if flag in options]
    return options.all("entity-type") + named


def entity_names(options: Options) -> list[str]:
    """Return the names in the order of the command line; an empty name stands for the default."""
    given = iter(options.all("entity-name"))
    found = []
    for word in options.command:
        flag = word.lstrip("-").partition("=")[0] if word.startswith("-") else ""
        if flag == "entity-name":
            found.append(next(given))
        elif flag == "entity-default":
            found.append("")
    found += [options[flag] for flag in ENTITY_FLAGS if flag in options]
    return found + [""] * len(options.given(*DEFAULT_FLAGS))


def check(options: Options) -> None:
    """Check which flags go together, in the order in which Kafka's tool does."""
    if len(options.given("alter", "describe")) != 1:
        raise Usage("Command must include exactly one action: --describe, --alter")
    forbid(options, "describe", ("add-config", "delete-config"))
    kinds, names = entity_types(options), entity_names(options)
    if len(set(kinds)) != len(kinds):
        twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        raise Terse(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if not options.given("bootstrap-server", "bootstrap-controller"):
        raise Terse("Either --bootstrap-server or --bootstrap-controller must be specified.")
    for kind in kinds:
        if kind not in TYPES:
            known = ", ".join(TYPES)
            how = "with a --bootstrap-server or --bootstrap-controller argument"
            raise Terse(f"Invalid entity type {kind}, the entity type must be one of {known} {how}")
    if not kinds:
        raise Terse("At least one entity type must be specified")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise Terse("Only 'users' and 'clients' entity types may be specified together")
    if options.given("entity-name", "entity-type", "entity-default") and options.given(*ENTITY_FLAGS, *DEFAULT_FLAGS):
        raise Terse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if set(kinds) & {"brokers", "broker-loggers"}:
        for name in names:
            if name and not re.fullmatch(r"[+-]?\d+", name):
                what = f"must be a valid integer broker id, but it is: {name}"
                raise Terse(f"The entity name for {kinds[0]} {what}")
    (check_describe if "describe" in options else check_alter)(options, kinds, names)


def check_describe(options: Options, kinds: Sequence[str], names: Sequence[str]) -> None:
    if not set(kinds) & set(WITH_DEFAULTS) and "entity-default" in options:
        raise Terse(f"--entity-default must not be specified with --describe of {','.join(kinds)}")
    if "broker-loggers" in kinds and not any(names):
        raise Terse(f"An entity name must be specified with --describe of {','.join(kinds)}")


def check_alter(options: Options, kinds: Sequence[str], names: Sequence[str]) -> None:
    if set(kinds) & set(WITH_DEFAULTS):
        if not names:
            raise Terse(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(names):
        raise Terse(f"An entity name must be specified with --alter of {','.join(kinds)}")
    if len(options.given("add-config", "add-config-file")) == 2:
        raise Terse("Only one of --add-config or --add-config-file must be specified")
    if not options.given("add-config", "add-config-file", "delete-config"):
        raise Terse(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(kinds) != len(names):
        raise Terse("An entity name must be specified for every entity type")


def added(options: Options) -> dict[str, str]:
    """Parse --add-config and its file; commas within brackets do not separate."""
    found = read_file(options["add-config-file"]) if "add-config-file" in options else {}
    if "add-config" in options:
        for part in re.split("," + _OUTSIDE, options["add-config"]):
            pair = re.split(r"\s*=\s*" + _OUTSIDE, part)
            if len(pair) != 2:
                form = 'all configs to be added must be in the format "key=val" or  "key=[val1,val2]" to group values '
                form += "which contain commas."
                raise Terse(f"requirement failed: Invalid entity config: {form}")
            found[pair[0].strip()] = re.sub(r"\[?\]?", "", pair[1]).strip()
    for name in found:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", name):
            raise Terse(f"Invalid character found for config key: {name}")
    return found


def alter(client: Client, options: Options) -> None:
    kinds, names = entity_types(options), entity_names(options)
    new, removed = added(options), [name.strip() for name in options.all("delete-config")]
    kind, name = kinds[0], names[0]
    if kind in KINDS:
        alter_resource(client, kind, name, new, removed)
    elif kind == "ips":
        if unknown := [one for one in (*new, *removed) if one not in IP_QUOTAS]:
            listed = ",".join(unknown)
            raise Terse(_only("connection quota configs can be added", "ips", listed))
        alter_quotas(client, kinds, names, new, removed)
    else:
        alter_user(client, kinds, names, new, removed)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _only(what: str, kind: str, unknown: str) -> str:
    return f"Only {what} for '{kind}' using --bootstrap-server. Unexpected config names: {unknown}"


def alter_resource(client: Client, kind: str, name: str, new: Mapping[str, str], removed: Sequence[str]) -> None:
    if kind == "broker-loggers":
        known = {entry.name for entry in entries(client, kind, name, everything=True)}
        if unknown := [one for one in (*removed, *new) if one not in known]:
            raise Terse(f"Invalid broker logger(s): {','.join(unknown)}")
    configs.alter(client, configs.Resource(KINDS[kind][0], name), configs.changes(new, removed))


def alter_user(
    client: Client, kinds: Sequence[str], names: Sequence[str], new: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Change quotas or credentials, not both at once."""
    alone = kinds == ["users"]
    allowed = (*QUOTAS, *(users.MECHANISMS if alone else ()))
    what = "quota and SCRAM credential configs" if alone else "quota configs"
    for given, done in ((new, "added"), (removed, "deleted")):
        if unknown := [one for one in given if one not in allowed]:
            listed = f"Set({', '.join(unknown)})" if done == "added" else f"ArrayBuffer({', '.join(unknown)})"
            raise Terse(_only(f"{what} can be {done}", "users" if alone else "clients", listed))
    quota = [one for one in (*new, *removed) if one in QUOTAS]
    if any(one in users.MECHANISMS for one in (*new, *removed)):
        if "" in names:
            raise Terse(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
                "--bootstrap-server."
            )
        if quota:
            raise Terse(
                "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
                "--bootstrap-server."
            )
        users.alter(client, names[0], {one: credential(one, text) for one, text in new.items()}, removed)
    else:
        alter_quotas(client, kinds, names, new, removed)


def credential(mechanism: str, text: str) -> tuple[str, int]:
    """Parse password and iterations from `iterations=8192,password=secret`."""
    match = _CREDENTIAL.fullmatch(text)
    if not match:
        raise Terse(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = users.ITERATIONS if match[1] in (None, "-1", "", "-") else int(match[1])
    if iterations < users.LEAST_ITERATIONS:
        least = f"the minimum {users.LEAST_ITERATIONS} required for {mechanism}"
        raise Terse(f"Iterations {iterations} is less than {least}")
    return match[2], iterations


def alter_quotas(
    client: Client, kinds: Sequence[str], names: Sequence[str], new: Mapping[str, str], removed: Sequence[str]
) -> None:
    known = next(iter(quotas.described(client, filters(kinds, names)).values()), {})
    if unknown := [one for one in removed if one not in known]:
        raise Terse(f"Invalid config(s): {','.join(unknown)}")
    entity = tuple((QUOTA_TYPES[kind], name or None) for kind, name in zip(kinds, names, strict=True))
    quotas.alter(client, entity, {name: number(name, text) for name, text in new.items()}, removed)


def number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Terse(f"Cannot parse quota configuration value for {name}: {text}") from None


def filters(kinds: Sequence[str], names: Sequence[str]) -> list[quotas.Filter]:
    """Return filters for types and names; a type without a name matches every name."""
    if len(names) > len(kinds):
        raise Terse("More entity names specified than entity types")
    padded = [*names, *[None] * (len(kinds) - len(names))]
    return [
        quotas.Filter(QUOTA_TYPES[kind], name or None, any=name is None)
        for kind, name in zip(kinds, padded, strict=True)
    ]


def describe(client: Client, options: Options) -> None:
    kinds, names = entity_types(options), entity_names(options)
    if kinds[0] in KINDS:
        there = all_names(client, kinds[0])
        if names and kinds[0] in WITHOUT_BROKERS and names[0] not in there:
            print(f"The {kinds[0][:-1]} '{names[0]}' doesn't exist and doesn't have dynamic config.")
            return
        for name in names[:1] or there:
            describe_resource(client, kinds[0], name, everything="all" in options)
        return
    print_quotas(quotas.described(client, filters(kinds, names)))
    if kinds == ["users"] and "" not in names:
        print_credentials(users.described(client, names or None))


def all_names(client: Client, kind: str) -> list[str]:
    """Return the names of all that have settings of a kind, in the order of Kafka's tool."""
    match kind:
        case "topics":
            return java_order.names(topic.name for topic in topics.listed(client))
        case "brokers" | "broker-loggers":
            return [*(str(broker) for broker in sorted(client.refresh().brokers)), ""]
        case "groups":
            there = [row.id for row in groups.listed(client)]
            return java_order.names([*there, *(one.name for one in configs.listed(client, [Kind.GROUP]))])
        case _:
            return [one.name for one in configs.listed(client, [KINDS[kind][0]])]


def entries(client: Client, kind: str, name: str, *, everything: bool) -> list[configs.Entry]:
    """Return the settings of a resource: all, or those set on it."""
    resource, source = KINDS[kind]
    wanted = "DYNAMIC_DEFAULT_BROKER_CONFIG" if kind == "brokers" and not name else source
    found = configs.described(client, configs.Resource(resource, name))
    return [entry for entry in found if everything or wanted is None or entry.source == wanted]


def describe_resource(client: Client, kind: str, name: str, *, everything: bool) -> None:
    if name:
        print(f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {name} are:")
    else:
        print(f"Default configs for {kind} in the cluster are:")
    for entry in entries(client, kind, name, everything=everything):
        print(entry_line(entry))


def entry_line(entry: configs.Entry) -> str:
    synonyms = ", ".join(f"{one.source}:{one.name}={_java(one.value)}" for one in entry.synonyms)
    return f"  {entry.name}={_java(entry.value)} sensitive={str(entry.sensitive).lower()} synonyms={{{synonyms}}}"


def _java(value: str | None) -> str:
    return "null" if value is None else value


def print_quotas(limits: Mapping[quotas.Entity, Mapping[str, float]]) -> None:
    for entity in hash_order(limits, entity_hash, len(limits)):
        named = dict(entity)
        texts = [quota_name(kind, named[kind]) for kind in ("user", "client-id", "ip") if kind in named]
        values = limits[entity]
        shown = ", ".join(f"{key}={double_text(values[key])}" for key in java_order.names(values, len(values)))
        print(f"Quota configs for {', '.join(texts)} are {shown}")


def quota_name(kind: str, name: str | None) -> str:
    return f"the default {QUOTA_NAMES[kind]}" if name is None else f"{QUOTA_NAMES[kind]} '{name}'"


def entity_hash(entity: quotas.Entity) -> int:
    """Compute ClientQuotaEntity.hashCode, which decides the order of printing."""
    pairs = (java_hash(kind) ^ java_hash(name or "") for kind, name in entity)
    return 31 + sum(pairs) & WORD


def print_credentials(credentials: Iterable[users.Credentials]) -> None:
    for one in credentials:
        if one.error:
            continue
        texts = ", ".join(f"{each.mechanism}=iterations={each.iterations}" for each in one.credentials)
        print(f"SCRAM credential configs for user-principal '{one.user}' are {texts}")


TOOL = Tool(
    "kafka-configs",
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics "
    "or group",
    (
        BOOTSTRAP,
        CONTROLLER,
        COMMAND_CONFIG,
        Flag("alter", help="Change settings."),
        Flag("describe", help="Show settings."),
        Flag("all", help="With --describe: show also settings that were not set there."),
        Flag("entity-type", "type", f"Choose one of {', '.join(TYPES)}."),
        Flag("entity-name", "name", "Name the topic, client id, user, broker id, address or group."),
        Flag("entity-default", help="Choose the default of clients, users, brokers or ips."),
        Flag("add-config", "k1=v1,k2=[v1,v2]", "Set these settings; put a value with commas in brackets."),
        Flag("add-config-file", "file", "Set the settings of this properties file."),
        Flag("delete-config", "k1,k2", "Remove these settings.", separator=","),
        Flag("force", help="Skip confirmation; there is none anyway."),
        ZOOKEEPER,
        Flag("zk-tls-config-file", "file", "Connect to ZooKeeper by this file.", refused=ZOOKEEPER.refused),
        *(Flag(name, "name", f"Same as --entity-type {kind} --entity-name.") for name, kind in ENTITY_FLAGS.items()),
        *(Flag(name, help=f"Same as --entity-type {kind} --entity-default.") for name, kind in DEFAULT_FLAGS.items()),
    ),
    run,
)

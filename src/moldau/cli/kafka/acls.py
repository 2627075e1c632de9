"""kafka-acls: adds, removes and lists rules about who may do what."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.admin import acls
from moldau.admin.acls import Acl, Filter
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, forbid
from moldau.cli.kafka.running import BOOTSTRAP, CONTROLLER, FAILED, OK, Terse, connect
from moldau.client import Client, ClientError

ACTIONS = ("add", "remove", "list")
RESOURCES = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
NAMES = {name.replace("_", "").lower(): name for name in acls.OPERATIONS}
# The operations that each resource supports, besides ALL.
SUPPORTED = {
    "TOPIC": "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS",
    "GROUP": "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS",
    "CLUSTER": "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE",
    "TRANSACTIONAL_ID": "DESCRIBE WRITE TWO_PHASE_COMMIT",
    "DELEGATION_TOKEN": "DESCRIBE",
    "USER": "CREATE_TOKENS DESCRIBE_TOKENS",
}
OF_PRODUCER = {"TOPIC": ("WRITE", "DESCRIBE", "CREATE"), "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE")}
OF_CONSUMER = {"TOPIC": ("READ", "DESCRIBE"), "GROUP": ("READ",)}


@dataclass(frozen=True, slots=True)
class Pattern:
    """The resource that a rule is about."""

    resource: str
    name: str
    pattern: str = "LITERAL"

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.resource}, name={self.name}, patternType={self.pattern})"


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule: who may do what, from where."""

    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        who = f"principal={self.principal}, host={self.host}"
        return f"({who}, operation={self.operation}, permissionType={self.permission})"


CLUSTER = Pattern("CLUSTER", acls.CLUSTER_NAME)
Rules = dict[Pattern, list[Entry]]


def run(options: Options) -> int:
    check(options)
    try:
        with connect(options) as client:
            DOING[options.given(*ACTIONS)[0]](client, options)
    except Terse as error:
        print(f"Error while executing ACL command: {error}\njava.lang.IllegalArgumentException: {error}\n")
        return FAILED
    except ClientError as error:
        cause = spoken(error.error, words_of(error))
        print(f"Error while executing ACL command: {cause}\njava.util.concurrent.ExecutionException: {cause}\n")
        return FAILED
    return OK


def check(options: Options) -> None:
    """Check which flags go together, in the order in which Kafka's tool does."""
    if not options.given("bootstrap-server", "bootstrap-controller"):
        raise Usage("One of --bootstrap-server or --bootstrap-controller must be specified")
    if len(options.given(*ACTIONS)) != 1:
        raise Usage("Command must include exactly one action: --list, --add, --remove. ")
    forbid(options, "list", ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"))
    for role in ("producer", "consumer"):
        forbid(options, role, ("operation", "deny-principal", "deny-host"))
    if "principal" in options and "list" not in options:
        raise Usage("The --principal option is only available if --list is set")
    if "producer" in options and "topic" not in options:
        raise Usage("With --producer you must specify a --topic")
    if "idempotent" in options and "producer" not in options:
        raise Usage("The --idempotent option is only available if --producer is set")
    more = "producer" not in options and options.given("cluster", "transactional-id")
    if "consumer" in options and (len(options.given("topic", "group")) < 2 or more):
        raise Usage(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )


def pattern_type(options: Options) -> str:
    kind = options["resource-pattern-type"].upper()
    if kind not in acls.PATTERNS:
        raise Usage(f"Unknown resource-pattern-type: {options['resource-pattern-type']}")
    return kind


def patterns(options: Options, *, needed: bool = True) -> list[Pattern]:
    """Return the resources that were named."""
    kind = pattern_type(options)
    found = [
        Pattern(resource, name.strip(), kind) for flag, resource in RESOURCES.items() for name in options.all(flag)
    ]
    if kind == "LITERAL" and options.given("cluster", "idempotent"):
        found.append(CLUSTER)
    if not found and needed:
        raise Usage(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    return list(dict.fromkeys(found))


def rules(options: Options) -> Rules:
    """Return the rules for each resource that the flags ask for."""
    named = patterns(options)
    found: Rules = {}
    if not options.given("producer", "consumer"):
        found = {pattern: entries(options, operations(options)) for pattern in named}
    if "producer" in options:
        found = {one: entries(options, OF_PRODUCER[one.resource]) for one in named if one.resource in OF_PRODUCER}
        if "idempotent" in options:
            found[CLUSTER] = entries(options, ["IDEMPOTENT_WRITE"])
    if "consumer" in options:
        for pattern in named:
            if pattern.resource in OF_CONSUMER:
                both = [*entries(options, OF_CONSUMER[pattern.resource]), *found.get(pattern, [])]
                found[pattern] = list(dict.fromkeys(both))
    check_operations(found)
    return found


def operations(options: Options) -> list[str]:
    given = options.all("operation") or ["All"]
    return [NAMES.get(text.strip().replace("_", "").lower(), "UNKNOWN") for text in given]


def entries(options: Options, wanted: Sequence[str]) -> list[Entry]:
    found = []
    for word in ("allow", "deny"):
        people = [principal(text) for text in options.all(f"{word}-principal")]
        hosts = [host.strip() for host in options.all(f"{word}-host")] or ["*"]
        found += [Entry(who, host, one, word.upper()) for who in people for one in wanted for host in hosts]
    return list(dict.fromkeys(found))


def principal(text: str) -> str:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise Terse(f"expected a string in format principalType:principalName but got {text.strip()}")
    return text.strip()


def check_operations(by_pattern: Rules) -> None:
    for pattern, listed in by_pattern.items():
        allowed = [*SUPPORTED[pattern.resource].split(), "ALL"]
        if any(entry.operation not in allowed for entry in listed):
            raise Usage(f"ResourceType {pattern.resource} only supports operations [{', '.join(allowed)}]")


def operation_name(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


def block(listed: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in listed) + "\n"


def add(client: Client, options: Options) -> None:
    kind = pattern_type(options)
    if kind not in ("LITERAL", "PREFIXED"):
        raise Usage(f"A '--resource-pattern-type' value of '{kind}' is not valid when adding acls.")
    found = rules(options)
    if not all(found.values()):
        raise Usage("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for one, listed in found.items():
        print(f"Adding ACLs for resource `{one}`: \n {block(listed)}")
        acls.create(client, [Acl(one.resource, one.name, one.pattern, *_fields(entry)) for entry in listed])


def _fields(entry: Entry) -> tuple[str, str, str, str]:
    return entry.principal, entry.host, entry.operation, entry.permission


def remove(client: Client, options: Options) -> None:
    for one, listed in rules(options).items():
        if listed:
            question = f"Are you sure you want to remove ACLs: \n {block(listed)} from resource filter `{one}`? (y/n)"
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{one}`? (y/n)"
        if agreed(options, question):
            whole = Filter(one.resource, one.name, one.pattern)
            filters = [Filter(one.resource, one.name, one.pattern, *_fields(entry)) for entry in listed]
            acls.delete(client, filters or [whole])


def agreed(options: Options, question: str) -> bool:
    if "force" in options:
        return True
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def list_acls(client: Client, options: Options) -> None:
    named = patterns(options, needed=False)
    filters = [Filter(one.resource, one.name, one.pattern) for one in named] or [Filter()]
    by_pattern: Rules = {}
    for acl in dict.fromkeys(acl for one in filters for acl in acls.described(client, one)):
        entry = Entry(acl.principal, acl.host, acl.operation, acl.permission)
        by_pattern.setdefault(Pattern(acl.resource, acl.name, acl.pattern), []).append(entry)
    people = [principal(text) for text in options.all("principal")]
    if not people:
        print_acls(by_pattern)
    for who in people:
        print(f"ACLs for principal `{who}`")
        own = {pattern: [entry for entry in listed if entry.principal == who] for pattern, listed in by_pattern.items()}
        print_acls({pattern: listed for pattern, listed in own.items() if listed})


def print_acls(by_pattern: Mapping[Pattern, Sequence[Entry]]) -> None:
    for pattern, listed in by_pattern.items():
        print(f"Current ACLs for resource `{pattern}`:\n{block(listed)}")


OPERATIONS = ", ".join(map(operation_name, list(acls.OPERATIONS)[1:]))
DOING = {"add": add, "remove": remove, "list": list_acls}

TOOL = Tool(
    "kafka-acls",
    "This tool helps to manage acls on kafka.",
    (
        BOOTSTRAP,
        CONTROLLER,
        Flag("command-config", "file", "Read settings of the client from this properties file.", optional=True),
        Flag("topic", "topic", "Choose rules about this topic, * for all; may be repeated."),
        Flag("cluster", help="Choose rules about the cluster."),
        Flag("group", "group", "Choose rules about this group, * for all; may be repeated."),
        Flag("transactional-id", "transactional-id", "Choose rules about this transactional id, * for all."),
        Flag("idempotent", help="With --producer: allow it to be idempotent."),
        Flag("delegation-token", "delegation-token", "Choose rules about this delegation token, * for all."),
        Flag("user-principal", "user-principal", "Choose rules about the tokens of this user."),
        Flag(
            "resource-pattern-type",
            "type",
            "Choose literal or prefixed; for existing rules also any or match.",
            default="LITERAL",
        ),
        Flag("add", help="Add rules."),
        Flag("remove", help="Remove rules."),
        Flag("list", help="List rules."),
        Flag("operation", "operation", f"Name an operation: {OPERATIONS}. (All)"),
        Flag("allow-principal", "User:name", "Allow this principal; User:* is everybody."),
        Flag("deny-principal", "User:name", "Deny this principal, whatever other rules allow."),
        Flag("principal", "User:name", "With --list: list rules for this principal.", optional=True),
        Flag("allow-host", "host", "Allow connections from this host. (*)"),
        Flag("deny-host", "host", "Deny connections from this host. (*)"),
        Flag("producer", help="Add what a producer needs: Write, Describe, Create on the topic."),
        Flag("consumer", help="Add what a consumer needs: Read, Describe on the topic and Read on the group."),
        Flag("force", help="Skip confirmation."),
    ),
    run,
)

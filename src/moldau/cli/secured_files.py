"""The folder of a secured platform: certificates, passwords, a file of settings for each part, and its users.

`moldau secure init` makes it, `moldau up` and the parts read it. All files are for their owner alone. What the parts
may do in Kafka is in GRANTS: it is granted when a cluster starts for the first time.
"""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from moldau.admin.acls import CLUSTER_NAME, Acl
from moldau.admin.mistakes import Mistake
from moldau.admin.weaknesses import PROPERTIES, SERVICES_OF_HTTP
from moldau.http import ADMIN, EDITOR
from moldau.http.users import User, change_users, hash_password
from moldau.tls import StoreError
from moldau.tls.issuing import issue, make_authority
from moldau.tls.stores import Identity, pem, read_store

FOLDER = "moldau-secure"
UP, USERS = "moldau.toml", "users"
AUTHORITY, AUTHORITY_KEY, IDENTITY, SERVICES = "ca.pem", "ca.key", "broker.pem", "services.pem"
ADMINISTRATOR, BROKER, APP = "admin", "broker", "app"
MECHANISM = "SCRAM-SHA-512"
KAFKA = "org.apache.kafka.common.security"
PARTS = (*SERVICES_OF_HTTP, "worker")
# Roles of the parts that log in to others over HTTP.
ROLES = {"rest": EDITOR, "connect": EDITOR, "sql": EDITOR, "worker": EDITOR, "console": ADMIN}

# What each part may do, as (principal, resource, name, operations); a name that ends with * is a prefix.
GRANTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("registry", "TOPIC", "_schemas", ("ALL",)),
    ("registry", "TOPIC", "_dek_registry_keys", ("ALL",)),
    ("registry", "GROUP", "schema-registry", ("ALL",)),
    ("registry", "TRANSACTIONAL_ID", "schema-registry-*", ("ALL",)),
    *((part, "USER", "*", ("CREATE_TOKENS",)) for part in ("rest", "console", "sql")),
    ("rest", "CLUSTER", CLUSTER_NAME, ("DESCRIBE",)),
    ("console", "CLUSTER", CLUSTER_NAME, ("DESCRIBE", "DESCRIBE_CONFIGS")),
    ("console", "TOPIC", "*", ("DESCRIBE", "DESCRIBE_CONFIGS")),
    ("console", "TOPIC", "__moldau_*", ("ALL",)),
    ("console", "GROUP", "*", ("DESCRIBE",)),
    # These run what users have deployed: they read and write the users' topics.
    *((part, "TOPIC", "*", ("ALL",)) for part in ("connect", "sql", "worker")),
    *((part, "GROUP", "*", ("ALL",)) for part in ("connect", "sql", "worker")),
    *((part, "TRANSACTIONAL_ID", "*", ("ALL",)) for part in ("connect", "sql", "worker")),
    *((part, "CLUSTER", CLUSTER_NAME, ("DESCRIBE",)) for part in ("connect", "sql", "worker")),
    (APP, "TOPIC", "*", ("READ", "WRITE", "CREATE", "DESCRIBE")),
    (APP, "GROUP", "*", ("READ",)),
    (APP, "TRANSACTIONAL_ID", "*", ("WRITE", "DESCRIBE")),
)
DENIALS = ((APP, "TOPIC", "_*", ("ALL",)),)  # topics of the platform itself

BROKER_FILE = """# Made by `moldau secure init`. It holds secrets: keep it to yourself.
listeners=SASL_SSL://{host}:{port}
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL
ssl.keystore.location={folder}/broker.pem
ssl.truststore.location={folder}/ca.pem
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={kafka}.scram.ScramLoginModule required;
listener.name.sasl_ssl.plain.sasl.jaas.config={login}
listener.name.controller.sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config={between}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:broker
delegation.token.secret.key={secret}
moldau.delegation.token.implicit=true
moldau.audit.file={folder}/audit-broker.log
"""
JAVA_FILE = """# Made by `moldau secure init`, for --command-config and for Java clients.
bootstrap.servers={address}
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
sasl.mechanism={mechanism}
sasl.jaas.config={kafka}.{module} required username="{user}" password="{password}";
"""
HTTP = """ssl.keystore.location={folder}/services.pem
ssl.truststore.location={folder}/ca.pem
authentication.method=BASIC
authentication.users.file={folder}/users
moldau.audit.file={folder}/audit-{part}.log
"""
CLIENT = """{prefix}security.protocol=SASL_SSL
{prefix}sasl.mechanism=PLAIN
{prefix}sasl.username={part}
{prefix}sasl.password={password}
{prefix}ssl.ca.location={folder}/ca.pem
"""
OF_REGISTRY = """{prefix}schema.registry.basic.auth.user.info={part}:{password}
{prefix}schema.registry.ssl.ca.location={folder}/ca.pem
"""
OF_CONVERTER = """{role}.converter.schema.registry.basic.auth.user.info={part}:{password}
{role}.converter.basic.auth.credentials.source=USER_INFO
{role}.converter.basic.auth.user.info={part}:{password}
{role}.converter.schema.registry.ssl.truststore.location={folder}/ca.pem
"""
OF_CONNECT = """connect.basic.auth.user.info={part}:{password}
connect.ssl.ca.location={folder}/ca.pem
"""
ACTING = "moldau.act.as.caller=true\n"


def part_file(part: str, password: str, folder: Path) -> str:
    """Return the settings of a part."""

    def fill(text: str, **more: str) -> str:
        return text.format(part=part, password=password, folder=folder, **{"prefix": "", **more})

    head = f"# Made by `moldau secure init`, for the {part}. It holds secrets: keep it to yourself.\n"
    match part:
        case "registry":
            return head + fill(HTTP) + fill(CLIENT, prefix="kafkastore.")
        case "rest":
            return head + fill(HTTP) + fill(CLIENT, prefix="client.") + fill(OF_REGISTRY) + ACTING
        case "sql":
            return head + fill(HTTP) + fill(CLIENT, prefix="client.") + fill(OF_REGISTRY, prefix="ksql.") + ACTING
        case "console":
            return head + fill(HTTP) + fill(CLIENT) + fill(OF_REGISTRY) + fill(OF_CONNECT) + ACTING
        case "connect":
            of_http = "".join(
                f"listeners.https.{line}\n" if line.startswith("ssl.") else f"{line}\n"
                for line in fill(HTTP).splitlines()
            )
            kafka = JAVA_FILE.partition("\n")[2].partition("\n")[2]
            own = kafka.format(
                folder=folder,
                mechanism="PLAIN",
                kafka=KAFKA,
                module="plain.PlainLoginModule",
                user=part,
                password=password,
            )
            return head + of_http + own + "".join(fill(OF_CONVERTER, role=role) for role in ("key", "value"))
        case _:
            return head + fill(CLIENT) + fill(OF_REGISTRY)


def make_files(folder: Path, host: str, port: int, names: list[str]) -> Mapping[str, str]:
    """Write the files into a folder, once; returns the passwords by user."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    folder = folder.resolve()
    authority = make_authority("Moldau")
    passwords = {name: secrets.token_urlsafe(24) for name in (ADMINISTRATOR, BROKER, APP, *PARTS)}
    write(folder / AUTHORITY_KEY, authority.key_pem() + pem(authority.chain))
    write(folder / AUTHORITY, pem(authority.chain))
    for file, name in ((IDENTITY, "broker"), (SERVICES, "services")):
        write(folder / file, identity(authority, names, name))
    for name, role in {ADMINISTRATOR: ADMIN, APP: EDITOR, **ROLES}.items():
        change_users(folder / USERS, name, User(hash_password(passwords[name]), frozenset((role,))))
    for part in PARTS:
        write(folder / f"{part}.properties", part_file(part, passwords[part], folder).encode())
    address = f"{host}:{port}"
    write(folder / "admin.properties", client_file(folder, address, ADMINISTRATOR, passwords[ADMINISTRATOR], "PLAIN"))
    write(folder / "app.properties", client_file(folder, address, APP, passwords[APP], MECHANISM))
    write(folder / UP, f"# Made by `moldau secure init`, for `moldau up`.\nsecure = {str(folder)!r}\n".encode())
    # The last one: if it is there, the others are.
    write(folder / PROPERTIES, broker_file(folder, host, port, passwords).encode())
    return passwords


def broker_file(folder: Path, host: str, port: int, passwords: Mapping[str, str]) -> str:
    module = f"{KAFKA}.plain.PlainLoginModule required"
    own = f'username="{BROKER}" password="{passwords[BROKER]}" user_{BROKER}="{passwords[BROKER]}"'
    users = " ".join(f'user_{name}="{passwords[name]}"' for name in (ADMINISTRATOR, *PARTS))
    return BROKER_FILE.format(
        host=host,
        port=port,
        folder=folder,
        kafka=KAFKA,
        login=f"{module} {own} {users};",
        between=f"{module} {own};",
        secret=secrets.token_urlsafe(32),
    )


def client_file(folder: Path, address: str, user: str, password: str, mechanism: str) -> bytes:
    """Return the settings of a user's client, for Java and Kafka's own tools."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return JAVA_FILE.format(
        folder=folder, address=address, user=user, password=password, mechanism=mechanism, kafka=KAFKA, module=module
    ).encode()


def identity(authority: Identity, names: Iterable[str], whose: str) -> bytes:
    made = issue(authority, whose, list(names))
    return made.key_pem() + pem(made.chain)


def rotate(folder: Path) -> datetime.datetime:
    """Put new certificates of the same names in the place of those of broker and services; returns when they end."""
    from moldau.tls.names import alternative_names

    try:
        (authority,) = read_store(str(folder / AUTHORITY_KEY)).identities
        before = {file: read_store(str(folder / file)).identities[0] for file in (IDENTITY, SERVICES)}
    except (StoreError, ValueError, IndexError) as error:
        raise Mistake(f"{folder} has no usable certificates: {error}. `moldau secure init` makes them.") from None
    for file, old in before.items():
        write(folder / file, identity(authority, sorted(alternative_names(old.certificate)), Path(file).stem))
    return read_store(str(folder / IDENTITY)).identities[0].certificate.not_valid_after_utc


def write(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, at once or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(data)
        os.fsync(descriptor)
    os.replace(temporary, path)


def granted() -> list[Acl]:
    """Return the rules of GRANTS and DENIALS."""
    return [
        Acl(kind, name.removesuffix("*") or "*", pattern, f"User:{who}", "*", operation, permission)
        for permission, rows in (("ALLOW", GRANTS), ("DENY", DENIALS))
        for who, kind, name, operations in rows
        for pattern in ("PREFIXED" if name.endswith("*") and name != "*" else "LITERAL",)
        for operation in operations
    ]


def grant(folder: Path, brokers: str) -> bool:
    """Create the users and rules of a platform on a new cluster; False if it has them, or had them once."""
    from moldau.admin import acls, users
    from moldau.client import Client
    from moldau.client.java_settings import read_file, translated

    login = translated(read_file(str(folder / "admin.properties")))
    with Client({**login, "bootstrap.servers": brokers}) as client:
        if acls.described(client, acls.Filter(principal="User:registry")):
            return False
        app = translated(read_file(str(folder / "app.properties")))
        users.alter(client, APP, {MECHANISM: (app["sasl.password"], users.ITERATIONS)})
        acls.create(client, granted())
    return True

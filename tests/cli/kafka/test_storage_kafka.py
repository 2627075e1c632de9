"""`kafka-storage format` beside Kafka's own: the same settings and words, the same output, the same files."""

from __future__ import annotations

import base64
import ipaddress
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moldau.log.checkpoints import encode_id
from moldau.machines.metadata.checkpoints import Checkpoint, read_checkpoint
from moldau.settings.properties import read_properties
from moldau.wire import messages as m
from moldau.wire.records import batches
from tests.cli.kafka.running import run

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

CLUSTER, OTHER = "4L6g3nShT-eMCtK--X86sw", "JEXY6aqzQY-32P5TStzaFg"
BASE = {"node.id": "7", "controller.listener.names": "CONTROLLER"}
LISTENERS = "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
DYNAMIC = {"controller.quorum.bootstrap.servers": "127.0.0.1:19093"}
STATIC = {"controller.quorum.voters": "7@127.0.0.1:19093"}
BOTH = {"process.roles": "broker,controller", "listeners": LISTENERS}
BROKER = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:19092"}
CONTROLLER = {"process.roles": "controller", **DYNAMIC}
SETTINGS: dict[str, dict[str, str]] = {
    "dynamic": {**BOTH, **DYNAMIC},
    "static": {**BOTH, **STATIC},
    "broker": {**BROKER, **DYNAMIC},
    "static broker": {**BROKER, "controller.quorum.voters": "1@127.0.0.1:19093"},
    "no host": {**CONTROLLER, "listeners": "CONTROLLER://:19093", "metadata.log.dir": "{folder}/m"},
    "any host": {**CONTROLLER, "listeners": "CONTROLLER://0.0.0.0:19093"},
    "advertised": {
        **CONTROLLER,
        "listeners": "CONTROLLER://0.0.0.0:19093",
        "advertised.listeners": "CONTROLLER://example.com:1234",
    },
    "two listeners": {
        **CONTROLLER,
        "controller.listener.names": "C2,CONTROLLER",
        "listeners": "CONTROLLER://h1:19093,C2://h2:19094",
        "listener.security.protocol.map": "C2:PLAINTEXT,CONTROLLER:PLAINTEXT",
    },
}
ONE = "1@h:1:JEXY6aqzQY-32P5TStzaFg"
THREE = f"{ONE},2@h:2:MvDxzVmcRsaTz33bUuRU6A,7@[::1]:3:07R5amHmR32VDA6jHkGbTA"
QUORUMS = f"""
dynamic |
dynamic | --standalone
dynamic | --standalone --no-initial-controllers
dynamic | --initial-controllers {THREE} --standalone
dynamic | --no-initial-controllers
dynamic | --initial-controllers {THREE}
dynamic | --initial-controllers {ONE}
dynamic | -I 17@h:1:JEXY6aqzQY-32P5TStzaFg,2@h:1:MvDxzVmcRsaTz33bUuRU6A,7@h:3:07R5amHmR32VDA6jHkGbTA
static |
static | -s
static | -I {THREE}
static | -N
broker |
broker | -N
broker | -s
broker | -I {THREE}
static broker |
static broker | -s
no host | -s
any host | -s
advertised | -s
two listeners | -s
"""
LEVELS = """
static | -r 4.1
static | -r 3.3
static | -r 3.3-IV3
static | -r 4.0.1
static | -r 4.4
static | -r 4.4-IV0
static | -r nonsense
static | -r 3.2
static | --release-version=
dynamic | -s -r 3.8
dynamic | -s -r 3.9
dynamic | -N -r 3.8
static | -f metadata.version=25
static | -f metadata.version=31
static | -f metadata.version=99
static | -f metadata.version=25 -r 4.1
static | -f kraft.version=0
static | -f kraft.version=1
static | -f kraft.version=2
dynamic | -s -f kraft.version=0
dynamic | -s -f kraft.version=1
dynamic | -s -f kraft.version=2
dynamic | -N -f kraft.version=0
dynamic | -N -f kraft.version=1
dynamic | -f kraft.version=1
broker | -f kraft.version=0
static | -f group.version=0
static | -f group.version=0 -f share.version=0
static | -f group.version=5
static | -f group.version=-1
static | -f nope=1
static | -f nope
static | -f group.version=x
static | -f group.version=1 -f group.version=0
static | -f transaction.version=1 -f streams.version=0
static | -r 3.9 -f eligible.leader.replicas.version=1
static | -r 3.9 -f transaction.version=2
static | -r 3.9 -f share.version=1
"""
CREDENTIALS = """
SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]
SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]
SCRAM-SHA-256=[name=alice,password="ab",salt="N3E="] -S SCRAM-SHA-512=[name=bob,password=x,salt=N3E=]
SCRAM-SHA-256=[name=alice,password=é,salt=N3E]
SCRAM-SHA-256=[name=a,password=b,saltedpassword=YCE=,salt=N3E=]
SCRAM-SHA-256=[name=a,password=b,salt=N3E=,]
x
SCRAM-SHA-1=[name=a,password=b]
scram-sha-256=[name=a,password=b]
SCRAM-SHA-256=name=a
SCRAM-SHA-256=[name=a
SCRAM-SHA-256=[]
SCRAM-SHA-256=[name]
SCRAM-SHA-256=[password=b]
SCRAM-SHA-256=[name=a]
SCRAM-SHA-256=[name=a,saltedpassword=YCE=]
SCRAM-SHA-256=[name=a,salt=$$,password=b]
SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword=$]
SCRAM-SHA-256=[name=a,iterations=x,password=b]
SCRAM-SHA-256=[name=a,iterations=1,password=b]
SCRAM-SHA-512=[name=a,iterations=99999,password=b]
SCRAM-SHA-256=[name=a,password=b,zz=1,foo=2]
SCRAM-SHA-256=[name=a,password=b] -r 3.4
"""
VOTERS = """
,
x
x@h:1:JEXY6aqzQY-32P5TStzaFg
1@
1@h
1@[h:1:JEXY6aqzQY-32P5TStzaFg
1@[h]x
1@h:1
1@h:x:JEXY6aqzQY-32P5TStzaFg
1@h:99999:JEXY6aqzQY-32P5TStzaFg
1@h:1:short
1@h:1:
1@h:1:JEXY6aqzQY+32P5TStzaFg
1@h:1:JEXY6aqzQY-32P5TStzaFg,1@h:2:MvDxzVmcRsaTz33bUuRU6A
1@:1:JEXY6aqzQY-32P5TStzaFg
+1@h:1:JEXY6aqzQY-32P5TStzaFg,
"""
OWNER = f"version=1\ncluster.id={CLUSTER}\nnode.id=7\ndirectory.id={OTHER}\n"
# What lies in the directories before -> file and its content; None is a directory.
BEFORE: dict[str, dict[str, str | None]] = {
    "all are formatted": {"a/meta.properties": OWNER, "b/meta.properties": OWNER.replace(OTHER, CLUSTER)},
    "one is formatted": {"a/meta.properties": OWNER},
    "the home is formatted": {"b/meta.properties": OWNER},
    "of another cluster": {"a/meta.properties": OWNER.replace(CLUSTER, OTHER)},
    "of another node": {"b/meta.properties": OWNER.replace("=7", "=8")},
    "one is a file": {"a": "no directory"},
    "all are files": {"a": "no directory", "b": "no directory"},
    "damaged": {"a/meta.properties": "version=1\n"},
    "there already": {"a/other": "kept", "b/__cluster_metadata-0": None},
}
PROGRAM = """
import java.io.*;
import java.util.*;

public class Formats {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        for (String line : new BufferedReader(new InputStreamReader(System.in, "UTF-8")).lines().toList()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(out, true, "UTF-8");
            System.setErr(new PrintStream(err, true, "UTF-8"));
            int code = 1;
            try { code = kafka.tools.StorageTool.execute(line.split("\\t", -1), to); }
            catch (Throwable error) { System.err.print(error.getMessage()); }
            for (ByteArrayOutputStream text : List.of(out, err))
                answers.print(Base64.getEncoder().encodeToString(text.toByteArray()) + " ");
            answers.println(code);
        }
        answers.flush();
        Runtime.getRuntime().halt(0);
    }
}
"""
NO_SALT = re.compile(r"\[(?!.*salt=)")


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, and the settings of the node for which it is."""

    settings: str
    words: tuple[str, ...]
    before: str = ""

    def __str__(self) -> str:
        return " ".join((self.settings, self.before, "|", *self.words))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool printed and which files it wrote, made comparable."""

    code: int
    out: str
    err: str
    files: dict[str, Any]


def cases() -> list[Case]:
    lines = [line.split(" |") for line in (QUORUMS + LEVELS).splitlines() if line]
    made = [Case(settings, tuple(words.split())) for settings, words in lines]
    made += [Case("static", ("-S", *words.split())) for words in CREDENTIALS.split("\n") if words]
    made += [Case("dynamic", ("-I", words)) for words in VOTERS.split("\n") if words]
    return made + [Case("dynamic", ("-s", *words), before) for before in BEFORE for words in ((), ("-g",))]


def command(case: Case, folder: Path) -> list[str]:
    """Write the settings of a case; returns the words of its command line."""
    folder.mkdir(parents=True)
    values = {**BASE, "log.dirs": "{folder}/b,{folder}/a", **SETTINGS[case.settings]}
    text = "".join(f"{name}={value.format(folder=folder)}\n" for name, value in values.items())
    (folder / "server.properties").write_text(text)
    for name, content in BEFORE.get(case.before, {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).mkdir(parents=True) if content is None else (folder / name).write_text(content)
    return ["format", "-t", CLUSTER, "-c", str(folder / "server.properties"), *case.words]


def kafkas(libs: Path, tmp: Path, commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Code, output and error of each command line, in one JVM."""
    program = tmp / "Formats.java"
    program.write_text(PROGRAM)
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    given = "\n".join("\t".join(words) for words in commands)
    done = subprocess.run(
        [*java, "-cp", f"{libs}/*", str(program)], input=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return [(int(code), base64.b64decode(out).decode(), base64.b64decode(err).decode()) for out, err, code in rows]


def outcome(case: Case, folder: Path, code: int, out: str, err: str) -> Outcome:
    secrets = re.sub(r"\b(salt|storedKey|serverKey)=\[[^\]]*\]", r"\1=(hidden)", out)
    return Outcome(code, secrets, " ".join(err.split()), files(case, folder))


def files(case: Case, folder: Path) -> dict[str, Any]:
    """The files below a folder by their names, as what they say."""
    contents: dict[str, Any] = {}
    own: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "meta.properties":
            contents[name] = read_properties(str(path))
            own[contents[name].pop("directory.id", "")] = f"the id of {path.parent.name}"
        elif path.suffix == ".checkpoint":
            contents[name] = (structure(path.read_bytes()), read_checkpoint(path.read_bytes()))
        elif path.is_file() and path.name != "server.properties":
            contents[name] = path.read_bytes()
    assert len(own) == sum(name.endswith("meta.properties") for name in contents)
    for name, content in contents.items():
        if name.endswith(".checkpoint"):
            contents[name] = (content[0], *comparable(case, content[1], own))
    return contents


def structure(data: bytes) -> list[tuple[int, ...]]:
    """The batches of a checkpoint without their times."""
    return [(one.base_offset, one.count, one.attributes, one.partition_leader_epoch, one.size) for one in batches(data)]


def comparable(case: Case, read: Checkpoint, own: dict[str, str]) -> tuple[Any, ...]:
    """The content of a checkpoint, where random ids and salts say only what they belong to."""
    records: list[Any] = list(read.records)
    if any("SCRAM" in word and NO_SALT.search(word) for word in case.words):
        records = [
            (one.name, one.mechanism, one.iterations) if isinstance(one, m.UserScramCredentialRecord) else one
            for one in records
        ]
    voters = []
    for voter in read.voters.voters if read.voters else ():
        directory = encode_id(voter.voter_directory_id)
        places = [(one.name, address(one.host), one.port) for one in voter.endpoints]
        voters.append((voter.voter_id, own.get(directory, directory), places, voter.k_raft_version_feature))
    return records, voters, read.kraft_version


def address(host: str) -> str:
    """Write an IPv6 address in one way; Java writes its zeros."""
    return str(ipaddress.ip_address(host)) if ":" in host else host


@pytest.fixture(scope="module")
def outcomes(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Case, tuple[Outcome, Outcome]]:
    """Both tools on each case, at the same paths one after the other: some lines come in the order of their hashes."""
    tmp = tmp_path_factory.mktemp("formats")
    root, rows = tmp / "nodes", cases()
    theirs = kafkas(kafka_libs, tmp, [command(case, root / str(number)) for number, case in enumerate(rows)])
    expected = [
        outcome(case, root / str(number), *done) for number, (case, done) in enumerate(zip(rows, theirs, strict=True))
    ]
    shutil.rmtree(root)
    both = {}
    for number, case in enumerate(rows):
        folder = root / str(number)
        done = run("kafka-storage", *command(case, folder))
        both[case] = (expected[number], outcome(case, folder, done.code, done.out, done.err))
    return both


@pytest.mark.parametrize("case", cases(), ids=str)
def test_both_print_and_write_the_same(case: Case, outcomes: dict[Case, tuple[Outcome, Outcome]]) -> None:
    theirs, ours = outcomes[case]
    if "salt" not in str(case):  # the length of a random salt is Kafka's own, and so is the size of its batch
        theirs, ours = (replace(one, files=without_sizes(one.files, case)) for one in (theirs, ours))
    assert ours == theirs


def without_sizes(files: dict[str, Any], case: Case) -> dict[str, Any]:
    if "SCRAM" not in str(case) and "[::1]" not in str(case):
        return files
    return {
        name: ([batch[:-1] for batch in content[0]], *content[1:]) if name.endswith(".checkpoint") else content
        for name, content in files.items()
    }

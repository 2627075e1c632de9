"""What security costs: plain traffic under ACLs and a quota, TLS handshakes, and connections that stay."""

import resource
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

from benchmarks import tls
from benchmarks.brokers import Broker
from benchmarks.client import Options
from benchmarks.places import PORT, BenchError
from benchmarks.workloads import Effort, Samples
from moldau.client import Client, check
from moldau.client import messages as m

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # so that the first ACLs can be made
}
SPARE_PORT = PORT + 4
ALLOW, DENY, ALL = 3, 2, 2  # permissions and operations have numbers of their own
TOPIC, GROUP, CLUSTER, TRANSACTION = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
STRANGERS = 200  # ACLs that fit nobody here
UNREACHED = 1e12  # bytes a second
CLIENTS = 4  # threads that shake hands; Python lets go of its lock meanwhile
SETTLE_S = 3.0
SPARE_FILES = 200
ONE_MB = 1024.0


def guard(broker: Broker) -> None:
    """Give the broker ACLs and a quota for everybody, by which its clients may do what they did before."""
    rules = [(kind, "*", LITERAL) for kind in (TOPIC, GROUP, TRANSACTION)] + [(CLUSTER, "kafka-cluster", LITERAL)]
    acls = [acl(*rule, "User:ANONYMOUS", ALLOW) for rule in rules]
    acls += [acl(TOPIC, f"other{n}", PREFIXED, f"User:somebody{n}", (ALLOW, DENY)[n % 2]) for n in range(STRANGERS)]
    rates = [m.AlterClientQuotasRequest_OpData(f"{kind}_byte_rate", UNREACHED) for kind in ("producer", "consumer")]
    everybody = m.AlterClientQuotasRequest_EntityData("user", None)
    entry = m.AlterClientQuotasRequest_EntryData([everybody], rates)
    with Client({"bootstrap.servers": broker.address}) as client:
        for made in client.send(m.CreateAclsRequest(acls)).results:
            check(made)
        check(client.send(m.AlterClientQuotasRequest([entry], False)).entries[0])


def acl(kind: int, name: str, pattern: int, principal: str, permission: int) -> m.CreateAclsRequest_AclCreation:
    return m.CreateAclsRequest_AclCreation(kind, name, pattern, principal, "*", ALL, permission)


def beside_open(broker: Broker, effort: Effort, *, run: Callable[..., Samples], **shape: int | Options) -> Samples:
    """Another load on a broker with ACLs and a quota, and on one without, in turn."""
    other = replace(broker, name="open", home=broker.home.with_name("open"), port=SPARE_PORT)
    with ExitStack() as ending:
        for one, settings in ((broker, AUTHORIZER), (other, {})):
            ending.callback(one.wipe)
            one.wipe()
            one.start(settings=settings)
        guard(broker)
        guarded, free = (ending.enter_context(closing(run(one, effort, **shape))) for one in (broker, other))
        next(free), next(guarded)
        while True:
            beside, sample = next(free), next(guarded)
            sample["kept"] = sample["per_second"] / beside["per_second"]
            sample["cpu_kept"] = sample["cpu_us"] / beside["cpu_us"]
            yield sample


def handshakes(broker: Broker, effort: Effort, *, count: int) -> Samples:
    """New connections, each with a whole handshake, from a few threads."""
    count = effort.count(count) // CLIENTS
    context = tls.client_context(broker.home)

    def run() -> None:
        for _ in range(count):
            opened(broker, context).close()

    while True:
        threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
        cpu, began = broker.cpu_seconds(), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, done = time.monotonic() - began, count * CLIENTS
        yield {"per_second": done / seconds, "cpu_us": (broker.cpu_seconds() - cpu) / done * 1e6}


def opened(broker: Broker, context: ssl.SSLContext) -> ssl.SSLSocket:
    sock = socket.create_connection(("127.0.0.1", broker.port + tls.STEP), timeout=60)
    return context.wrap_socket(sock, server_hostname="127.0.0.1")


def connections(broker: Broker, effort: Effort, *, count: int) -> Samples:
    """The memory of connections with TLS that stay and say nothing: RSS, of a JVM the heap that is in use."""
    count = effort.count(count)
    allow_files(count + SPARE_FILES)
    while True:
        broker.wipe()
        broker.start_warm()
        context = tls.client_context(broker.home)
        with hold(broker, context, 1000):  # so that what the first ones need once does not count
            pass
        time.sleep(SETTLE_S)
        before = used_kb(broker)
        with hold(broker, context, count):
            time.sleep(SETTLE_S)
            sample = {"kb_each": (used_kb(broker) - before) / count, "rss": broker.rss_mb()}
        broker.wipe()
        yield sample


@contextmanager
def hold(broker: Broker, context: ssl.SSLContext, count: int) -> Iterator[None]:
    with ExitStack() as held:
        for _ in range(count):
            held.enter_context(opened(broker, context))
        yield


def used_kb(broker: Broker) -> float:
    """What a broker has in use. A JVM keeps what was freed, so there it is what lives on its heap."""
    if broker.name != "kafka":
        return broker.rss_mb() * ONE_MB
    told = subprocess.run(["jcmd", str(broker.pid), "GC.class_histogram"], capture_output=True, text=True, timeout=120)
    with suppress(StopIteration, ValueError, IndexError):
        total = next(line for line in reversed(told.stdout.splitlines()) if line.startswith("Total"))
        return int(total.split()[2]) / ONE_MB
    raise BenchError(f"jcmd does not say what {broker.name} has on its heap: {told.stderr.strip()[-200:]}.")


def allow_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        raise BenchError(f"{wanted} open files are needed, {hard} are allowed; raise the limit (ulimit -Hn).")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))

"""The C client: compiled when its source is newer, run as a process, its answer parsed."""

import json
import shutil
import subprocess
from pathlib import Path

import confluent_kafka

from benchmarks.places import CACHE, BenchError

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
BINARY = CACHE / "client"
NEEDED = (
    "Install a C compiler, pkg-config and librdkafka's headers (Debian: apt-get install gcc pkg-config librdkafka-dev)"
)

QUIET = {"rd.log_level": 2, "rd.socket.nagle.disable": "true"}
PRODUCE = QUIET | {
    "rd.acks": "all",
    "rd.linger.ms": 5,
    "rd.queue.buffering.max.messages": 1_000_000,
    "rd.queue.buffering.max.kbytes": 1_048_576,
}
ONE_RECORD = PRODUCE | {"rd.linger.ms": 0, "rd.batch.num.messages": 1}
CONSUME = QUIET | {
    "rd.fetch.queue.backoff.ms": 10,  # the default of a second stalls a fast consumer
    "rd.queued.min.messages": 200_000,
    "rd.queued.max.messages.kbytes": 1_048_576,
    "rd.fetch.message.max.bytes": 1_048_576,
}
LATENCY = QUIET | {"p.linger.ms": 0, "p.acks": "all", "c.fetch.queue.backoff.ms": 10}

Options = dict[str, str | int]
Answer = dict[str, float]


def library() -> Path:
    """The librdkafka inside confluent-kafka's wheel: the one our users run, and newer than a distribution's."""
    found = sorted((Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka-*.so*"))
    if not found:
        raise BenchError("confluent-kafka was installed without its own librdkafka; install it as a wheel.")
    return found[0]


def headers() -> list[str]:
    """Any version's will do: the interface only grows."""
    for tool in ("cc", "pkg-config"):
        if not shutil.which(tool):
            raise BenchError(f"`{tool}` is missing. {NEEDED}.")
    flags = subprocess.run(["pkg-config", "--cflags", "rdkafka"], capture_output=True, text=True)
    if flags.returncode:
        raise BenchError(f"pkg-config does not know rdkafka. {NEEDED}.")
    return flags.stdout.split()


def build() -> None:
    """Compile the client, unless it is newer than what it is made of."""
    shared = library()
    newest = max(source.stat().st_mtime for source in SOURCES)
    if BINARY.exists() and BINARY.stat().st_mtime > max(newest, shared.stat().st_ctime):
        return
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    linking = [str(shared), f"-Wl,-rpath,{shared.parent}", "-lpthread"]
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    command = ["cc", "-O2", "-Wall", "-o", str(BINARY), *sources, *headers(), *linking]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode:
        raise BenchError(f"The client does not compile: {compiled.stderr.strip()}")


def version() -> str:
    """librdkafka's, as linked."""
    return subprocess.run([str(BINARY), "version"], capture_output=True, text=True, check=True).stdout.strip()


def start(mode: str, options: Options) -> subprocess.Popen[str]:
    """The client as a running process: end it by `finish`."""
    arguments = [f"{name}={value}" for name, value in options.items()]
    return subprocess.Popen([str(BINARY), mode, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], seconds: float) -> Answer:
    """Its answer; killed when it does not come to an end."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise BenchError(f"The client was still running after {seconds:.0f} s.") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode or not out:
        raise BenchError(f"The client failed: {err.strip()[-500:] or process.returncode}.")
    return json.loads(out)


def run(mode: str, options: Options) -> Answer:
    """One whole run, bounded by its own `seconds` and a minute to end in."""
    return finish(start(mode, options), float(options["seconds"]) + 60)

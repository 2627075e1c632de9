"""franz-go's kgo tests that talk to a broker: chains of groups, share groups and transactions with checksums.

The module, its tests with it, comes through the Go proxy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.conformance.outcome import Expected, Outcome, Verdict
from tests.conformance.secured import Login

SUITE = "franz-go"
VERSION = "v1.22.2"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
SECONDS = 900
REACHES_A_BROKER = re.compile(r"newTestClient|tmpTopic|tmpNamedTopic|adm\(\)|getSeedBrokers|KGO_SEEDS|scramSeeds")
FUNCTION = re.compile(r"^func (Test\w+)(\(.*?^\})", re.MULTILINE | re.DOTALL)
TOLD = re.compile(r"_test\.go:\d+: (?!FAILED TESTING|deleting)|unable|panic(?!\.go)")  # not what is done afterwards
DIAL, LOG_IN = "if testCert != nil {", "if saslScram != nil {\n\t\topts = append(opts, SASL(saslScram))\n\t}"
NOT_OVER_TLS = {"TestIssue769": "it dials by itself, which kgo refuses with TLS"}
STATES = {"pass": Verdict.PASSED, "skip": Verdict.SKIPPED}


class NoModule(Exception):
    """The module could not be had; the text says why."""


def module(work: Path) -> Path:
    """A scratch module that requires franz-go; gives the folder with the sources of kgo."""
    work.mkdir(parents=True)

    def go(*arguments: str) -> str:
        done = subprocess.run(["go", *arguments], cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoModule(f"go {arguments[0]} failed: {done.stderr.strip().splitlines()[0][:160]}")
        return done.stdout.strip()

    go("mod", "init", "outside")
    go("get", "-t", f"{PACKAGE}@{VERSION}")
    return Path(go("list", "-f", "{{.Dir}}", PACKAGE))


def names(sources: Path) -> dict[str, bool]:
    """The tests in files that reach for the seed brokers, and whether each does so itself or is a unit test."""
    texts = [file.read_text() for file in sources.glob("*_test.go") if file.name != "helpers_test.go"]
    bodies = [found for text in texts if REACHES_A_BROKER.search(text) for found in FUNCTION.findall(text)]
    return {name: bool(REACHES_A_BROKER.search(body)) for name, body in sorted(bodies)}


def outcomes(events: Iterable[str]) -> Iterator[Outcome]:
    """Leaf tests out of `go test -json`; a parent counts only if it failed by itself."""
    state: dict[str, str] = {}
    reason: dict[str, str] = {}
    for line in events:
        event = json.loads(line) if line.startswith("{") else {}
        test, action = event.get("Test"), event.get("Action")
        if test and action in ("run", "pass", "fail", "skip"):
            state[test] = action
        elif test and action == "output" and TOLD.search(event["Output"]):
            reason[test] = event["Output"].strip()
    parents = {test.rsplit("/", 1)[0] for test in state if "/" in test}
    for test, action in state.items():
        below = [other for name, other in state.items() if name.startswith(f"{test}/")]
        if test not in parents or (action == "fail" and not {"fail", "run"} & set(below)):
            why = "did not end" if action == "run" else reason.get(test, "")
            yield Outcome(test, STATES.get(action, Verdict.FAILED), why[:160])


def let_all_log_in(sources: Path, work: Path) -> None:
    """Use a copy of the module whose clients all log in: by itself only two tests do what KGO_TEST_SCRAM says."""
    copy = work / "module"
    shutil.copytree(sources.parents[1], copy, copy_function=shutil.copyfile)
    helpers = copy / "pkg" / "kgo" / "helpers_test.go"
    text = helpers.read_text()
    if text.count(DIAL) != 1:
        raise NoModule("helpers_test.go of franz-go has changed: its clients cannot be made to log in")
    helpers.write_text(text.replace(DIAL, f"{LOG_IN}\n\t{DIAL}"))
    module = PACKAGE.removesuffix("/pkg/kgo")
    subprocess.run(["go", "mod", "edit", "-replace", f"{module}={copy}"], cwd=work, check=True)


def run(
    bootstrap: str,
    work: Path,
    wanted: Iterable[str],
    everything: bool,
    records: int,
    told: Callable[[str], None],
    replicas: int = 1,
    login: Login | None = None,
) -> Iterator[Outcome]:
    expected = Expected.of(SUITE)
    sources = module(work)
    known = names(sources)
    listed = list(wanted) or list(known)
    waiting = [] if everything else [name for name in listed if name in expected.waits]
    yield from (Outcome(name, Verdict.WAITS, expected.waits[name]) for name in waiting)
    barred = {name: why for name, why in NOT_OVER_TLS.items() if login and name in listed}
    yield from (Outcome(name, Verdict.SKIPPED, why) for name, why in barred.items())
    chosen = [name for name in listed if name not in waiting and name not in barred]
    if not chosen:
        return
    environment = {**os.environ, "KGO_SEEDS": bootstrap, "KGO_TEST_RECORDS": str(records)}
    environment["KGO_TEST_RF"] = str(replicas)
    environment |= login.franz_go if login else {}
    command = ["go", "test", "-json", "-count=1", f"-timeout={SECONDS}s", "-parallel=4", f"-run=^({'|'.join(chosen)})$"]
    if login and login.has_sasl:
        let_all_log_in(sources, work)
    told(f"{len(chosen)} tests run")
    with subprocess.Popen([*command, PACKAGE], cwd=work, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for outcome in outcomes(process.stdout):
            alone = outcome.verdict is Verdict.PASSED and not known.get(outcome.test.split("/")[0])
            yield Outcome(outcome.test, Verdict.EMPTY, "a unit test among them") if alone else outcome
